"""Headless Chromium shows the page in English and Chinese, on a phone and a desktop, light and dark: nothing is asked of a network,
nothing sticks out sideways, no text lies over another, no figure or heading of one word is broken, and the Chinese page has no English.

The screenshots lie in $CUDIAG_SCREENSHOTS, if that is set.
"""
import html
from html.parser import HTMLParser

from cudiag_scenario import *
from language import english_in

browser = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
if browser is None:
    raise CannotRun("no Chromium (apt-get install chromium)")
world = World()
shots = Path(os.environ.get("CUDIAG_SCREENSHOTS", world.root))

# A page of the test's own holds ours in a frame of some width, and asks whether it is wider than that, what colours it came out in, and
# where each text lies. What stands in .table may be scrolled sideways. (Chromium's own window is not made narrower than 500.)
PROBE = """<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><body style="margin:0">
<iframe id="frame" style="border:0;width:WIDTHpx;height:HEIGHTpx"></iframe><pre id="told"></pre>
<script>
const frame = document.getElementById("frame");
frame.addEventListener("load", () => {
  const page = frame.contentDocument, root = page.documentElement, style = e => frame.contentWindow.getComputedStyle(e);
  const bars = [...page.querySelectorAll("svg.chart rect.busy")].filter(r => r.getBoundingClientRect().height > 1).length;
  const small = [...page.querySelectorAll("p, li, td, th, figcaption, .axis, summary")].filter(e => e.textContent.trim() && parseFloat(style(e).fontSize) < 13).length;
  page.querySelector("details").open = true;
  const texts = [], broken = [], walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, range = page.createRange();
    if (!node.data.trim() || node.parentElement.closest("svg")) continue;
    range.selectNodeContents(node);
    const lines = range.getClientRects();
    if (lines.length > 1 && !node.parentElement.closest(".name") && node.data.length < 12 && !/\\s/.test(node.data)) broken.push(node.data);
    for (const r of lines) {
      // A line's own height is its letters', so what is left out above and below is less than what stands between lines.
      texts.push({text: node.data, scrolls: !!node.parentElement.closest(".table"), left: r.left, right: r.right, top: r.top + r.height / 5, bottom: r.bottom - r.height / 5});
    }
  }
  const over = (a, b) => a.text !== b.text && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom && b.top < a.bottom;
  const overlap = texts.flatMap((a, i) => texts.slice(i + 1).filter(b => over(a, b)).map(b => a.text + " | " + b.text));
  const outside = texts.filter(t => !t.scrolls && (t.left < 0 || t.right > root.clientWidth)).map(t => t.text);
  document.getElementById("told").textContent = JSON.stringify({wide: root.scrollWidth > root.clientWidth, width: root.clientWidth,
    page: style(page.body).backgroundColor, text: style(page.body).color, bars, small, texts: texts.length, broken, overlap, outside});
});
frame.srcdoc = PAGE;
</script>"""


def probe(text, width, height=900):
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


def written(language):
    """The page in that language, the trace and the events beside it."""
    directory = world.root / language
    directory.mkdir()
    subprocess.run([os.environ["CUDIAG_WRITE_PROFILE_FILES"], directory], check=True, env={**os.environ, "CUDIAG_LANG": language})
    events, = directory.glob("events.*")
    return (directory / "profile.html").read_text(), (directory / "profile.pftrace").read_bytes(), events.read_bytes()


def is_shown(text, language):
    assert "<script" not in text and not re.search(r'(src|href)=|url\(|@import', text), "something is loaded from elsewhere"
    for name, width in (("phone", 360), ("desktop", 1280)):
        for dark in (False, True):
            dom = chromium("--dump-dom", probe(text, width), size="1400,900", dark=dark)
            told = json.loads(html.unescape(re.search(r'<pre id="told">(\{.*?\})</pre>', dom)[1]))
            print(language, name, "dark" if dark else "light", told)
            assert told["width"] == width and not told["wide"] and told["bars"] == 40 and told["small"] == 0, told
            assert told["texts"] > 250 and not told["broken"] and not told["overlap"] and not told["outside"], told
            page_light, text_light = luminance(told["page"]), luminance(told["text"])
            assert (page_light < 0.1) == dark, told
            contrast = (max(page_light, text_light) + 0.05) / (min(page_light, text_light) + 0.05)
            assert contrast >= 7, (contrast, told)
            height = 4000 if name == "phone" else 2800
            chromium(f"--screenshot={shots}/{language}-{name}-{'dark' if dark else 'light'}.png", probe(text, width, height),
                     size=f"{max(width, 500)},{height}", dark=dark)


class Said(HTMLParser):
    """The tags of a page, and all that it says to people: texts, tooltips, what is read aloud."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.said = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.said += [value for name, value in attributes if name == "aria-label"]

    def handle_data(self, data):
        if data.strip() and self.tags[-1] != "style":
            self.said.append(data.strip())


english, *english_files = written("en")
is_shown(english, "en")
chinese, *chinese_files = written("zh")
assert chinese_files == english_files, "traces and tags are keys for other tools: the same in every language"
assert '<html lang="en">' in english and '<html lang="zh-CN">' in chinese
ours, theirs = Said(chinese), Said(english)
assert ours.tags == theirs.tags and len(ours.said) == len(theirs.said), "the Chinese page is made otherwise"
found = english_in("\n".join(ours.said), {})
assert not found, found
# Shorter texts too: what is the same in both is a figure or a name.
NAME = re.compile(r"AdamW \(foreach\)|void (at::native::|gemm<).*|cudiag bench adam|CUPTI: \S+")
same = {text for text, other in zip(ours.said, theirs.said) if text == other and re.search(r"[A-Za-z]{3}", text) and not NAME.fullmatch(text)}
assert not same, same
if not subprocess.run(["fc-list", ":lang=zh-cn"], capture_output=True, text=True).stdout.strip():
    raise CannotRun("no font with Chinese characters (apt-get install fonts-wqy-microhei)")
is_shown(chinese, "zh")
