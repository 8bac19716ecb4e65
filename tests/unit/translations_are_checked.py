"""scripts/check-translations finds what is missing, unused, does not fit or is not said at all; and our own texts are complete."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(root):
    done = subprocess.run([sys.executable, root / "scripts" / "check-translations"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def changed(root, name, change):
    path = root / "diagnose" / "knowledge" / "zh" / name
    head, _, body = path.read_text().partition("\n")
    words = json.loads(body)
    change(words)
    path.write_text(head + "\n" + json.dumps(words, ensure_ascii=False))


def must_say(text, change):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for folder in ("diagnose", "present", "cli", "shim", "cupti", "scripts"):
            shutil.copytree(ROOT / folder, root / folder)
        change(root)
        status, said = check(root)
        assert status == 1 and text in said, f"not found: {text}\n{status}\n{said}"


def append(name, code):
    def change(root):
        with open(root / name, "a") as source:
            source.write(code)
    return change


status, said = check(ROOT)
assert status == 0, said
KEY = "{} does not exist"
must_say("no translation of", lambda root: changed(root, "build.json", lambda words: words.pop(KEY)))
must_say("does not have the fields", lambda root: changed(root, "build.json", lambda words: words.update({KEY: "不存在"})))
must_say("is said nowhere", lambda root: changed(root, "build.json", lambda words: words.update({"never said": "从来没有"})))
must_say("has no text", lambda root: changed(root, "labels.json", lambda words: words.update({"limits": " "})))
must_say("is there twice", lambda root: changed(root, "cuda.json", lambda words: words.update({KEY: "{} 不存在"})))
must_say("no translation of 'quite new words: {}'", append("diagnose/judge.cpp", 'auto x = say("quite new " /* and */ "words: {}", 1);\n'))
must_say("no translation of 'brand new' (labels)", append("present/terminal.cpp", 'auto x = painter.line(a ? "brand new" : "", text);\n'))
must_say("no translation of 'a name in braces' (labels)", append("diagnose/judge.cpp", 'void f() { x.evidence = {{"known", 1}, {"a_name_in_braces", {{"path", 2}}}}; }\n'))
must_say("no translation of 'nothing that fits was found'", append("cupti/seat.cpp", 'auto x = lack("nothing that fits was found");\n'))
must_say("is not said by say()", append("diagnose/judge.cpp", 'const char* x = "this is something that nobody translates";\n'))
must_say("and has none", lambda root: (root / "cli/doctor_trials.cpp").write_text("// nothing\n"))
must_say("is not there", lambda root: (root / "cli/doctor_trials.cpp").unlink())
