#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gitops_publish
short_description: Commit a rendered bundle to a GitOps repository
version_added: 1.0.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Makes one directory of a Git repository exactly what a local directory is, in one commit, and pushes it. Files that
    are no longer in the local directory are removed there; everything else in the repository stays as it is.
  - Nothing is committed when nothing differs. Nothing is ever force-pushed. When somebody else's push comes first, the
    change is made again on the new tip and pushed again, a bounded number of times.
  - The bytes of the files are committed as they are. Attributes, ignore rules, filters and hooks of the repository or
    of the user that runs the module have no say, because no working tree is checked out. File modes are V(0644), or
    V(0755) where the owner may execute the file.
  - A run that was killed can simply be run again.
requirements:
  - git >= 2.31 on the host that runs the module
  - C(ssh) for SSH addresses
attributes:
  check_mode:
    support: full
    details:
      - Reads from the repository and returns what would change. Neither commits nor pushes.
  diff_mode:
    support: full
    details:
      - A unified diff, cut at 64 KiB. It is also returned in check mode without C(--diff).
  idempotent:
    support: full
extends_documentation_fragment:
  - goodput.fleet.attributes
options:
  repo:
    description:
      - Address of the repository, such as V(https://git.example.com/platform/gitops.git),
        V(git@git.example.com:platform/gitops.git), V(file:///srv/git/gitops.git) or an absolute path.
      - Credentials in the address work, but O(token) keeps them out of the playbook. They never appear in results or
        arguments.
    type: str
    required: true
  branch:
    description:
      - Branch that the content belongs on. The default is the repository's default branch, and V(main) in an empty
        repository whose server names none.
    type: str
  path:
    description:
      - Directory in the repository, such as V(clusters/prod-1). It is replaced as a whole.
      - Refused are the root of the repository, anything outside of it, directories inside another bundle, and
        directories that hold one (a bundle is known by its C(bundle.sha256)).
    type: str
    required: true
  src:
    description:
      - Local directory to publish. Symbolic links in it are refused.
      - Use M(goodput.fleet.bundle_info) first to make sure that it is what was rendered, as the role
        P(goodput.fleet.publish#role) does.
    type: path
    required: true
  mode:
    description:
      - With V(direct), commit to O(branch).
      - With V(review), commit to a review branch that starts from O(branch), for a pipeline to open a merge request
        with. The same content always gets the same review branch. It is refreshed when the directory changed on
        O(branch) meanwhile.
    type: str
    choices: [direct, review]
    default: direct
  review_branch:
    description:
      - Name of the review branch. The default is C(goodput/CLUSTER-DIGEST), with the first 12 digits of RV(tree).
    type: str
  create_branch:
    description:
      - Whether O(branch) is started from the repository's default branch when it is not there. Only with
        O(mode=direct).
    type: bool
    default: false
  recipe:
    description:
      - Name of the recipe, for the commit message.
    type: str
    default: ''
  cluster:
    description:
      - Name of the cluster, for the commit message and the review branch. Needed with O(mode=review) unless
        O(review_branch) is given.
    type: str
    default: ''
  digests:
    description:
      - Digests for the trailers of the commit message. The key V(lock) becomes the trailer C(Lock-Digest).
    type: dict
    default: {}
  commit_message:
    description:
      - Replaces subject and body of the commit message. The trailers C(Recipe), C(Cluster), C(Path) and those of
        O(digests) are always added.
    type: str
    default: ''
  author_name:
    description:
      - Name of author and committer.
    type: str
    default: goodput.fleet
  author_email:
    description:
      - Email address of author and committer.
    type: str
    default: goodput.fleet@localhost
  signing_key:
    description:
      - Key to sign the commit with, as C(user.signingKey) of Git takes it. Not signed without it. The key must be
        usable without a passphrase prompt.
    type: str
  signing_format:
    description:
      - What kind of key O(signing_key) is.
    type: str
    choices: [openpgp, ssh, x509]
    default: openpgp
  token:
    description:
      - Token or password for HTTP and HTTPS addresses.
      - It is given only to the host of O(repo), through the environment of git, never in arguments, addresses or files.
      - Falls back to E(GOODPUT_GIT_TOKEN).
    type: str
  username:
    description:
      - User name that goes with O(token). The default is the one in O(repo), else V(x-access-token), which GitHub,
        GitLab and Gitea accept with a token.
    type: str
  ssh_key_file:
    description:
      - Private key for SSH addresses. Without it the agent and the SSH configuration of the user decide.
    type: path
  ssh_known_hosts_file:
    description:
      - File with the host keys to trust, instead of the user's.
    type: path
  ssh_accept_new_host_key:
    description:
      - Whether the key of a host that is not known yet is accepted and remembered. A changed key is always refused.
    type: bool
    default: false
  ca_file:
    description:
      - Certificates of the authorities to trust for HTTPS, in PEM.
    type: path
  depth:
    description:
      - How many commits to fetch. V(0) fetches the whole history. Where the server allows it, only names are fetched
        and not the contents of files, however many commits.
    type: int
    default: 1
  retries:
    description:
      - How often to try again when somebody else's push came first. A server that cannot be reached is tried again
        at most twice.
    type: int
    default: 10
  timeout:
    description:
      - Seconds for everything, all attempts together.
    type: int
    default: 300
seealso:
  - module: goodput.fleet.bundle
  - module: goodput.fleet.bundle_info
"""

EXAMPLES = r"""
- name: Commit a bundle
  goodput.fleet.gitops_publish:
    repo: https://git.example.com/platform/gitops.git
    branch: main
    path: clusters/prod-1
    src: /srv/bundles/prod-1
    cluster: prod-1
    recipe: h100-eks-ubuntu-inference-dynamo
    digests:
      lock: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    token: "{{ git_token }}"

- name: Show what would be committed
  goodput.fleet.gitops_publish:
    repo: git@git.example.com:platform/gitops.git
    path: clusters/prod-1
    src: /srv/bundles/prod-1
    ssh_key_file: /etc/goodput/deploy_key
  check_mode: true
  diff: true

- name: Put a change up for review
  goodput.fleet.gitops_publish:
    repo: https://git.example.com/platform/gitops.git
    path: clusters/prod-1
    src: /srv/bundles/prod-1
    cluster: prod-1
    mode: review
  register: proposal

- name: Tell the pipeline which merge request to open
  ansible.builtin.debug:
    msg: "{{ proposal.branch }} into {{ proposal.base }}"
  when: proposal.pending
"""

RETURN = r"""
commit:
  description:
    - The new commit, or the one that the branch is at when nothing changed. In check mode, where something would
      change, the commit it would start from.
    - Empty in check mode with an empty repository.
  returned: success
  type: str
  sample: 4bfe5c6d5c0c4092057e627f8fa5d6c60577b257
branch:
  description: Branch with the content. With O(mode=review), the review branch until O(branch) has the content.
  returned: success
  type: str
  sample: goodput/prod-1-9f86d081884c
base:
  description: Branch that the content belongs on.
  returned: success
  type: str
  sample: main
pending:
  description: Whether RV(branch) still has to be merged into RV(base).
  returned: success
  type: bool
  sample: true
tree:
  description: Git's digest of the published directory. C(git rev-parse COMMIT:PATH) gives the same.
  returned: success
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b
files:
  description: Names of the files that differ, below O(path). At most 1000 of each kind.
  returned: success
  type: dict
  contains:
    added:
      description: Files that were not there.
      returned: success
      type: list
      elements: str
      sample: [gpu-operator/values.yaml]
    modified:
      description: Files that had other bytes or another mode.
      returned: success
      type: list
      elements: str
      sample: [recipe.lock.yaml]
    removed:
      description: Files that are no longer there.
      returned: success
      type: list
      elements: str
      sample: []
counts:
  description: How many files differ.
  returned: success
  type: dict
  sample: {added: 1, modified: 1, removed: 0}
attempts:
  description: How many attempts it took. More than one when other pushes came first.
  returned: success
  type: int
  sample: 1
message:
  description: Message of the commit, empty when there is none.
  returned: success
  type: str
  sample: |
    Publish h100-eks-ubuntu-inference-dynamo to prod-1

    1 file added, 1 modified under clusters/prod-1.

    Recipe: h100-eks-ubuntu-inference-dynamo
    Cluster: prod-1
    Path: clusters/prod-1
    Lock-Digest: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
problems:
  description: What is wrong, each with a code, a message, where known the option it belongs to, and a hint.
  returned: failure
  type: list
  elements: dict
  sample:
    - code: declined
      message: "https://git.example.com/gitops.git declined the push to main: pre-receive hook declined: ask first"
      path: branch
      severity: error
"""

import os

from ansible.module_utils.basic import AnsibleModule, env_fallback
from ansible_collections.goodput.fleet.plugins.module_utils.publish.access import access
from ansible_collections.goodput.fleet.plugins.module_utils.publish.publish import publish
from ansible_collections.goodput.fleet.plugins.module_utils.publish.request import Request
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError

ACCESS = {
    "repo": {"type": "str", "required": True},
    "token": {"type": "str", "no_log": True, "fallback": (env_fallback, ["GOODPUT_GIT_TOKEN"])},
    "username": {"type": "str"},
    "ssh_key_file": {"type": "path", "no_log": False},
    "ssh_known_hosts_file": {"type": "path"},
    "ssh_accept_new_host_key": {"type": "bool", "default": False, "no_log": False},
    "ca_file": {"type": "path"},
}
REQUEST = {
    "src": {"type": "path", "required": True},
    "path": {"type": "str", "required": True},
    "branch": {"type": "str"},
    "mode": {"type": "str", "choices": ["direct", "review"], "default": "direct"},
    "review_branch": {"type": "str"},
    "create_branch": {"type": "bool", "default": False},
    "recipe": {"type": "str", "default": ""},
    "cluster": {"type": "str", "default": ""},
    "digests": {"type": "dict", "default": {}},
    "commit_message": {"type": "str", "default": ""},
    "author_name": {"type": "str", "default": "goodput.fleet"},
    "author_email": {"type": "str", "default": "goodput.fleet@localhost"},
    "signing_key": {"type": "str", "no_log": False},
    "signing_format": {"type": "str", "choices": ["openpgp", "ssh", "x509"], "default": "openpgp"},
    "depth": {"type": "int", "default": 1},
    "retries": {"type": "int", "default": 10},
    "timeout": {"type": "int", "default": 300},
}


def main():
    module = AnsibleModule(argument_spec=ACCESS | REQUEST, supports_check_mode=True)
    given = {key: value for key, value in module.params.items() if value is not None}
    try:
        way = access(
            ssh_command=os.environ.get("GIT_SSH_COMMAND", ""), **{key: given[key] for key in ACCESS if key in given}
        )
        module.no_log_values.update(way.secrets)
        for warning in way.warnings:
            module.warn(warning)
        request = Request(**{key: given[key] for key in REQUEST if key in given})
        diff = module.check_mode or module._diff
        module.exit_json(**publish(request, way, module.check_mode, diff, module.tmpdir))
    except FleetError as error:
        module.fail_json(**error.as_result())


if __name__ == "__main__":
    main()
