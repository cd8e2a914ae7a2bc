#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: repair_ticket
short_description: Hand a node that repair gives up on over to people, by a signed webhook
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Posts a ticket as JSON to a webhook and returns what the receiver calls it.
  - "The header C(Idempotency-Key) is the same however often the ticket is sent, so that a receiver that knows it makes
    one ticket only. C(X-Goodput-Timestamp) has the time of the attempt in seconds since 1970, and
    C(X-Goodput-Signature) is C(sha256=HEX), the HMAC-SHA256 with O(secret) over the timestamp, a dot and the body. A
    receiver should refuse what is older than some minutes."
  - Where the receiver cannot be reached, does not answer in time, or answers 408, 425, 429 or 5xx, it is tried again,
    after pauses that grow or that C(Retry-After) asks for. Any other answer that is not in O(status_code) is an error
    at once.
  - Redirects are followed within the receiver's own scheme, host and port, and only those that keep the request, which
    are 307 and 308.
options:
  url:
    description:
      - The webhook. It is treated as a secret, because the paths of many are.
    type: str
    required: true
  ticket:
    description:
      - What is handed over, as M(goodput.fleet.node_repair) returns it. It names the node in C(node), as a name or as a
        map with C(name).
      - At most 1 MiB as JSON.
    type: dict
    required: true
  key:
    description: The idempotency key. The default is the ticket's C(key).
    type: str
  secret:
    description: What the ticket is signed with. Without it there is no signature.
    type: str
  headers:
    description: Further headers, such as C(Authorization). Their values are treated as secrets.
    type: dict
    default: {}
  status_code:
    description: Answers that mean that the receiver has the ticket.
    type: list
    elements: int
    default: [200, 201, 202, 204]
  retries:
    description: How often it is tried again.
    type: int
    default: 5
  timeout:
    description: Seconds that one attempt may take.
    type: int
    default: 15
  give_up_after:
    description: Seconds after which it is not tried again.
    type: int
    default: 120
  use_proxy:
    description: Whether the proxies of the environment are used.
    type: bool
    default: true
  validate_certs:
    description: Whether the receiver's certificate has to be valid.
    type: bool
    default: true
  ca_path:
    description: Bundle of certificates of authorities that are trusted.
    type: path
  client_cert:
    description: Certificate of the client, which may hold the key too.
    type: path
  client_key:
    description: Key of O(client_cert).
    type: path
  url_username:
    description: User name for basic authentication.
    type: str
  url_password:
    description: Its password.
    type: str
extends_documentation_fragment:
  - goodput.fleet.attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is sent. Options and ticket are checked.
  diff_mode:
    support: none
  idempotent:
    support: partial
    details:
      - It is sent each time. The key keeps a receiver that knows it from making a second ticket.
seealso:
  - module: goodput.fleet.node_repair
"""

EXAMPLES = r"""
- name: Hand the node over
  goodput.fleet.repair_ticket:
    url: https://tickets.example.com/hooks/goodput
    secret: "{{ vault_ticket_secret }}"
    ticket: "{{ item }}"
  loop: "{{ repair.tickets }}"
  loop_control:
    label: "{{ item.node.name }}"

- name: To a service desk behind a proxy, with a token of its own
  goodput.fleet.repair_ticket:
    url: https://desk.example.com/api/now/table/incident
    headers:
      Authorization: "Bearer {{ vault_desk_token }}"
    key: gpu-0007-2026-11-30
    ticket:
      node: gpu-0007
      short_description: gpu-0007 stays closed, its GPU 3 fails after every repair
      serials: ["1650000000007"]
  environment:
    https_proxy: http://proxy.example.com:3128
"""

RETURN = r"""
reference:
  description: What the receiver calls the ticket. Empty where its answer does not say.
  returned: when it was sent
  type: str
  sample: OPS-4711
key:
  description: The idempotency key.
  returned: success
  type: str
  sample: xid-79-3f1c2ab4/ticket
status:
  description: The status of the answer.
  returned: when it was sent
  type: int
  sample: 201
attempts:
  description: How often it was sent.
  returned: when it was sent
  type: int
  sample: 1
receiver:
  description: Scheme, host and port of the webhook.
  returned: success
  type: str
  sample: https://tickets.example.com
bytes:
  description: Size of the body.
  returned: success
  type: int
  sample: 1874
at:
  description: When the receiver had taken it, in UTC.
  returned: when it was sent
  type: str
  sample: "2026-11-30T01:10:00Z"
problems:
  description: What is wrong with the input, or why the ticket was not taken.
  returned: failure
  type: list
  elements: dict
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import ticket, webhook
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument

OF_URLS = ("use_proxy", "validate_certs", "ca_path", "client_cert", "client_key", "url_username", "url_password")
FILES = ("ca_path", "client_cert", "client_key")
RANGES = {"retries": (0, 20), "timeout": (1, 300), "give_up_after": (1, 3600)}


def work(module: AnsibleModule) -> dict:
    params = module.params
    for name, (least, most) in RANGES.items():
        if not least <= params[name] <= most:
            raise InvalidDocument(f"is {params[name]}", path=name, hint=f"from {least} to {most}")
    for name in FILES:
        if params[name] and not os.path.isfile(params[name]):
            raise InvalidDocument(
                f"there is no file {params[name]}", path=name, hint="a file of PEM certificates or keys"
            )
    receiver = ticket.check_url(params["url"])
    more = ticket.check_headers(params["headers"])
    body, key = ticket.encode(params["ticket"]), ticket.key_of(params["ticket"], params["key"])
    found = {"changed": True, "receiver": receiver, "key": key, "bytes": len(body)}
    if module.check_mode:
        return {**found, "msg": f"would hand the ticket {key} to {receiver}"}
    options = {name: params[name] for name in OF_URLS if params[name] is not None}
    taken = ticket.hand_over(
        webhook.poster({**options, "force_basic_auth": bool(params["url_username"]), "use_netrc": False}),
        params["url"],
        body,
        key=key,
        secret=params["secret"].encode() if params["secret"] else None,
        accepted=params["status_code"],
        more=more,
        retries=params["retries"],
        timeout=float(params["timeout"]),
        give_up_after=float(params["give_up_after"]),
        clock=time.time,
        sleep=time.sleep,
    )
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    named = f", which calls it {taken.reference}" if taken.reference else ""
    result = {"status": taken.status, "reference": taken.reference, "attempts": taken.attempts, "at": at}
    return {**found, **result, "msg": f"{receiver} has the ticket {key}{named}"}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True, "no_log": True},
            "ticket": {"type": "dict", "required": True},
            "key": {"type": "str", "no_log": False},
            "secret": {"type": "str", "no_log": True},
            "headers": {"type": "dict", "default": {}, "no_log": True},
            "status_code": {"type": "list", "elements": "int", "default": [200, 201, 202, 204]},
            "retries": {"type": "int", "default": 5},
            "timeout": {"type": "int", "default": 15},
            "give_up_after": {"type": "int", "default": 120},
            "use_proxy": {"type": "bool", "default": True},
            "validate_certs": {"type": "bool", "default": True},
            "ca_path": {"type": "path"},
            "client_cert": {"type": "path"},
            "client_key": {"type": "path", "no_log": False},
            "url_username": {"type": "str"},
            "url_password": {"type": "str", "no_log": True},
        },
        supports_check_mode=True,
    )
    try:
        result = work(module)
    except FleetError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
