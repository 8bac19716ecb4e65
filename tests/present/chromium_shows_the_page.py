"""Headless Chromium shows the page on a phone and a desktop, light and dark: nothing is asked of a network, nothing sticks out sideways.

The screenshots lie in $CUDIAG_SCREENSHOTS, if that is set.
"""
from cudiag_scenario import *

browser = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
if browser is None:
    raise CannotRun("no Chromium (apt-get install chromium)")
world = World()
subprocess.run([os.environ["CUDIAG_WRITE_PROFILE_FILES"], world.root], check=True)
page = world.root / "profile.html"
text = page.read_text()
assert "<script" not in text and not re.search(r'(src|href)=|url\(|@import', text), "something is loaded from elsewhere"
shots = Path(os.environ.get("CUDIAG_SCREENSHOTS", world.root))

# A page of the test's own holds ours in a frame of some width, and asks whether it is wider than that, and what colours it came out in.
# (Chromium's own window is not made narrower than 500.)
PROBE = """<!DOCTYPE html><meta name="color-scheme" content="light dark"><body style="margin:0">
<iframe id="frame" style="border:0;width:WIDTHpx;height:HEIGHTpx"></iframe><pre id="told"></pre>
<script>
const frame = document.getElementById("frame");
frame.addEventListener("load", () => {
  const page = frame.contentDocument, root = page.documentElement, style = e => frame.contentWindow.getComputedStyle(e);
  const bars = [...page.querySelectorAll("svg.chart rect.busy")].filter(r => r.getBoundingClientRect().height > 1).length;
  const small = [...page.querySelectorAll("p, li, td, th, figcaption, .axis, summary")].filter(e => e.textContent.trim() && parseFloat(style(e).fontSize) < 13).length;
  document.getElementById("told").textContent = JSON.stringify({wide: root.scrollWidth > root.clientWidth, width: root.clientWidth,
    page: style(page.body).backgroundColor, text: style(page.body).color, bars, small});
});
frame.srcdoc = PAGE;
</script>"""


def probe(width, height=900):
    asked = PROBE.replace("WIDTH", str(width)).replace("HEIGHT", str(height)).replace("PAGE", json.dumps(text).replace("</", "<\\/"))
    return world.write(f"probe-{width}.html", asked).as_uri()


def chromium(*options, size, dark):
    done = subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                           f"--user-data-dir={world.root / 'browser'}", f"--window-size={size}",
                           f"--blink-settings=preferredColorScheme={0 if dark else 1}", *options], capture_output=True, text=True, timeout=120, env=world.variables())
    assert done.returncode == 0, done.stderr
    return done.stdout


def luminance(colour):
    parts = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


for name, width in (("phone", 360), ("desktop", 1280)):
    for dark in (False, True):
        told = json.loads(re.search(r'<pre id="told">(\{.*?\})</pre>', chromium("--dump-dom", probe(width), size="1400,900", dark=dark))[1].replace("&quot;", '"'))
        print(name, "dark" if dark else "light", told)
        assert told["width"] == width and not told["wide"] and told["bars"] == 40 and told["small"] == 0, told
        page_light, text_light = luminance(told["page"]), luminance(told["text"])
        assert (page_light < 0.1) == dark, told
        contrast = (max(page_light, text_light) + 0.05) / (min(page_light, text_light) + 0.05)
        assert contrast >= 7, (contrast, told)
        height = 2400 if name == "phone" else 1800
        chromium(f"--screenshot={shots}/{name}-{'dark' if dark else 'light'}.png", probe(width, height), size=f"{max(width, 500)},{height}", dark=dark)
