# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A BMC on loopback that speaks as much Redfish as the reset of a system needs.

with Bmc(uuid=node_uuid, on_reset=reboot) as bmc:
    bmc.url          # http://127.0.0.1:PORT, user admin, password `bmc.password`
    bmc.resets       # [("/redfish/v1/Systems/1", "ForceRestart")]
"""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Callable

SYSTEMS = "/redfish/v1/Systems"
TYPES = ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle", "Nmi"]


class Bmc:
    """`systems` are ids. `action_info`: the resets it knows are told by an object of their own, as newer ones do.
    `answer` is the status of a reset; `drop` closes the connection after it instead of answering."""

    def __init__(
        self,
        uuid: str = "",
        systems: tuple[str, ...] = ("1",),
        types: list[str] | None = None,
        action_info: bool = False,
        power: str = "On",
        answer: int = 204,
        drop: bool = False,
        on_reset: Callable[[], None] = lambda: None,
    ):
        self.uuid, self.systems, self.action_info, self.power = uuid, systems, action_info, power
        self.types = TYPES if types is None else types
        self.answer, self.drop, self.on_reset = answer, drop, on_reset
        self.password = "calvin-4711"
        self.resets: list[tuple[str, str]] = []
        bmc = self

        class Handler(_Handler):
            owner = bmc

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Bmc:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def resource(self, path: str) -> dict | None:
        if path == SYSTEMS:
            return {"Members": [{"@odata.id": f"{SYSTEMS}/{name}"} for name in self.systems]}
        name = path.removeprefix(f"{SYSTEMS}/")
        if name.removesuffix("/ResetActionInfo") not in self.systems:
            return None
        if name.endswith("/ResetActionInfo"):
            return {"Parameters": [{"Name": "ResetType", "Required": True, "AllowableValues": self.types}]}
        action = {"target": f"{path}/Actions/ComputerSystem.Reset"}
        if self.action_info:
            action["@Redfish.ActionInfo"] = f"{path}/ResetActionInfo"
        else:
            action["ResetType@Redfish.AllowableValues"] = self.types
        return {
            "@odata.id": path,
            "Id": name,
            "UUID": self.uuid,
            "SerialNumber": f"SN-{name}",
            "PowerState": self.power,
            "Actions": {"#ComputerSystem.Reset": action},
        }


class _Handler(http.server.BaseHTTPRequestHandler):
    owner: Bmc

    def do_GET(self):
        if self._known():
            found = self.owner.resource(self.path.rstrip("/"))
            self._say(404 if found is None else 200, found or _error("ResourceMissingAtURI"))

    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        system = self.path.removesuffix("/Actions/ComputerSystem.Reset")
        if not self._known():
            return
        if self.owner.resource(system) is None or system == self.path:
            self._say(404, _error("ResourceMissingAtURI"))
        elif given.get("ResetType") not in self.owner.types:
            self._say(400, _error("ActionParameterNotSupported"))
        else:
            if self.owner.answer < 400:
                self.owner.resets.append((system, given["ResetType"]))
                self.owner.on_reset()
            if self.owner.drop:
                self.close_connection = True
            else:
                self._say(self.owner.answer, {} if self.owner.answer < 400 else _error("GeneralError"))

    def _known(self) -> bool:
        wanted = base64.b64encode(f"admin:{self.owner.password}".encode()).decode()
        if self.headers.get("Authorization") == f"Basic {wanted}":
            return True
        self._say(401, _error("NoValidSession"))
        return False

    def _say(self, status: int, told: dict) -> None:
        body = b"" if status == 204 else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def _error(name: str) -> dict:
    message = {"MessageId": f"Base.1.8.{name}", "Message": name}
    return {"error": {"code": message["MessageId"], "message": name, "@Message.ExtendedInfo": [message]}}
