"""What `cudiag doctor` says of a world, and its remedies."""

import json


class Diagnosis:
    def __init__(self, world, *words, env=None):
        self.world = world
        self.asked = world.cudiag("doctor", "--python", world.python, "--json", *words, env=env)
        self.json = json.loads(self.asked.stdout)
        self.answers = {answer["question"]: answer for answer in self.json["answers"]}

    def __str__(self):
        return f"{self.asked}"

    def answers_with(self, **healths):
        """import_="green", build="red": the answers to the questions; the exit status follows from them."""
        for question, health in healths.items():
            answer = self.answers[question.rstrip("_")]
            if answer["health"] != health:
                raise AssertionError(f"{question} is {answer['health']}, not {health}: {answer['text']}\n{self}")
        red = any(answer["health"] == "red" for answer in self.json["answers"])
        if self.asked.status != (1 if red else 0):
            raise AssertionError(f"exit status {self.asked.status}\n{self}")
        return self

    def check(self, slug):
        """The first check with a finding of that slug."""
        for check in self.json["checks"]:
            if check["finding"] and check["finding"]["slug"] == slug:
                return check
        raise AssertionError(f"no check names {slug}: {[(c['name'], c['health'], c['text']) for c in self.json['checks']]}")

    def apply(self, slug, contains=""):
        """Pastes the first command of that finding with this text into a shell, as its user would."""
        for fix in self.check(slug)["finding"]["fixes"]:
            if fix["command"] and contains in fix["command"]:
                return self.world.paste(fix["command"])
        raise AssertionError(f"{slug} proposes no command with {contains!r}: {self.check(slug)['finding']['fixes']}")
