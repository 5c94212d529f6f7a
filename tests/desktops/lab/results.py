# SPDX-License-Identifier: MIT OR Apache-2.0
"""Results of the steps: outcome, details and picture."""

import json

from . import picture


class Results:
    def __init__(self, desktop, folder):
        self.desktop, self.folder, self.rows = desktop, folder, []
        folder.mkdir(parents=True, exist_ok=True)
        for old in (*folder.glob("*.png"), *folder.glob("*.log")):
            old.unlink()

    def met(self, session, step, met, detail):
        """Prints a step and keeps a picture of the screen."""
        detail = " ".join(str(detail).split())
        self.rows.append({"step": step, "met": bool(met), "detail": detail})
        print(f"{'ok' if met else 'FAILED':7} {self.desktop:9} {step}: {detail}", flush=True)
        try:
            picture.save(session.grab(), self.folder / f"{len(self.rows):02}-{step.replace(' ', '-')}.png")
        except Exception as error:  # after a logout there is no screen
            session.say(f"no picture of {step}: {error}")
        return bool(met)

    @property
    def whole(self):
        return all(row["met"] for row in self.rows)

    def write(self):
        (self.folder / "steps.json").write_text(json.dumps(self.rows, indent=1) + "\n")

    def write_breakage(self, row):
        """Stores the row of a breakage, replacing an earlier one."""
        path = self.folder / "breakages.json"
        known = {one["breakage"]: one for one in json.loads(path.read_text())} if path.exists() else {}
        path.write_text(json.dumps(list((known | {row["breakage"]: row}).values()), indent=1) + "\n")
