"""Evidence of certifications: what is stored, resuming, killed processes, and every change to a sealed folder."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification import evidence as room
from ansible_collections.goodput.fleet.plugins.module_utils.certification import inventory, storedlogs
from ansible_collections.goodput.fleet.plugins.module_utils.certification.evidence import Evidence, verify
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    InvalidDocument,
    Tampered,
    Unavailable,
)
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

CERTIFICATION = {"metadata": {"name": "nightly"}, "spec": {"target": {"nodeNames": ["n2", "n1"]}}}
CATEGORIES = [
    {"name": "all-reduce", "resolved": {"h100": {"bounds": [{"metric": "busbw", "expression": "value > 9"}]}}}
]
NODES = ["n2", "n1"]
RUN = {"id": "0123456789ab", "spec": "sha256:1", "nodes": ["n1", "n2"], "repeat": 1, "category": "all-reduce"}
OUTCOME = [{"node": "n1", "outcome": "pass"}, {"node": "n2", "outcome": "fail"}]


def keys(number: int) -> tuple[str, str]:
    private = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    public = private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain).decode(), public.decode()


PRIVATE, PUBLIC = keys(1)
OTHER_PUBLIC = keys(2)[1]


def opened(base, certification=CERTIFICATION, categories=CATEGORIES, nodes=NODES) -> Evidence:
    return Evidence.open(str(base), certification, categories, nodes)


def record(evidence, run=RUN, logs=None, outcome=OUTCOME):
    evidence.record(
        run, {"gp-0123456789ab-0": "hello\n"} if logs is None else logs, {"lines": 1}, {"phase": "x"}, outcome
    )


def codes(path, key=None):
    return [problem.code for problem in verify(str(path), key)]


@pytest.fixture
def sealed(tmp_path):
    with opened(tmp_path) as evidence:
        record(evidence)
        evidence.write("results.json", {"status": "fail"})
        evidence.write("reports/report.md", b"# Nightly\n")
        evidence.seal(PRIVATE)
    return evidence.path


def die_after(steps: int) -> None:
    """Kill this process when it has touched the disk so often."""
    left = iter(range(steps))

    def audit(name, _arguments):
        if name in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod") and next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(audit)


class TestStored:
    def test_every_part_is_there_and_listed(self, sealed):
        files = json.loads(Path(sealed, "manifest.json").read_text())["files"]
        run = "runs/0123456789ab/"
        parts = [run + name for name in ("run.json", "parsed.json", "observed.json", "outcome.json")]
        logs = [f"{run}logs/gp-0123456789ab-0.log"]
        assert set(files) == {"certification.json", "results.json", "reports/report.md", *parts, *logs}
        about = json.loads(Path(sealed, "certification.json").read_text())
        assert (about["nodes"], about["categories"]) == (["n1", "n2"], CATEGORIES)
        assert verify(sealed) == [] and verify(sealed, PUBLIC) == []

    def test_the_same_files_give_the_same_manifest_and_signature(self, sealed, tmp_path):
        before = {name: os.stat(os.path.join(sealed, name)).st_mtime_ns for name in os.listdir(sealed)}
        with opened(tmp_path) as evidence:
            evidence.write("results.json", {"status": "fail"})
            evidence.seal(PRIVATE)
        assert {name: os.stat(os.path.join(sealed, name)).st_mtime_ns for name in os.listdir(sealed)} == before

    def test_a_look_without_the_key_leaves_the_signature(self, sealed, tmp_path):
        with opened(tmp_path) as evidence:
            evidence.seal()
        assert codes(sealed, PUBLIC) == []
        with opened(tmp_path) as evidence:
            evidence.write("results.json", {"status": "pass"})
            evidence.seal()
        assert codes(sealed) == [] and codes(sealed, PUBLIC) == ["not-signed"]

    def test_what_is_no_number_is_null(self, tmp_path):
        with opened(tmp_path) as evidence:
            evidence.record(RUN, {}, {"value": float("nan"), 7: [float("inf"), 1.5]}, {}, [])
            assert evidence.load(RUN["id"])["parsed"] == {"value": None, "7": [None, 1.5]}
            evidence.seal()
        assert verify(evidence.path) == []

    def test_without_any_run_it_verifies(self, tmp_path):
        with opened(tmp_path) as evidence:
            assert evidence.runs() == []
            evidence.seal()
        assert verify(evidence.path) == []

    @pytest.mark.parametrize("name", ["../x", "/x", "a//b", "runs/x.json", "manifest.json", "certification.json", ".x"])
    def test_files_stay_in_their_place(self, tmp_path, name):
        with opened(tmp_path) as evidence, pytest.raises(InvalidDocument, match="the file"):
            evidence.write(name, {})

    @pytest.mark.parametrize("pod", ["../x", "a/b", "", ".", "-x"])
    def test_pods_are_names(self, tmp_path, pod):
        with opened(tmp_path) as evidence:
            with pytest.raises(InvalidDocument, match="not the name of a pod"):
                record(evidence, logs={pod: ""})
            assert evidence.runs() == []

    def test_a_disk_that_refuses_is_told(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(Unavailable, match="cannot keep the evidence"):
            opened(tmp_path / "file")


class TestResume:
    def test_a_finished_run_is_not_run_again(self, tmp_path):
        with opened(tmp_path) as evidence:
            assert evidence.finished(RUN) is None
            record(evidence)
        with opened(tmp_path) as again:
            assert again.finished(RUN) == OUTCOME
            assert again.path == evidence.path and again.runs() == [RUN["id"]]

    @pytest.mark.parametrize("change", [{"spec": "sha256:2"}, {"nodes": ["n1"]}, {"repeat": 2}])
    def test_an_unequal_run_is_never_reused(self, tmp_path, change):
        with opened(tmp_path) as evidence:
            record(evidence)
            other = {**RUN, **change}
            assert evidence.finished(other) is None
            record(evidence, other, outcome=[])
            assert evidence.finished(other) == [] and evidence.finished(RUN) is None

    def test_another_spec_bound_or_node_set_is_another_folder(self, tmp_path):
        bounds = [{"name": "all-reduce", "resolved": {"h100": {"bounds": []}}}]
        spec = {**CERTIFICATION, "spec": {"target": {"nodeNames": ["n1"]}}}
        made = [opened(tmp_path), opened(tmp_path, nodes=["n1"]), opened(tmp_path, categories=bounds)]
        made.append(opened(tmp_path, spec))
        assert len({evidence.path for evidence in made}) == 4
        record(made[0])
        assert [evidence.finished(RUN) for evidence in made[1:]] == [None] * 3
        for evidence in made:
            evidence.close()

    def test_the_order_of_nodes_and_labels_change_nothing(self, tmp_path):
        one = opened(tmp_path)
        one.close()
        labelled = {**CERTIFICATION, "metadata": {"name": "nightly", "labels": {"a": "b"}}, "status": {"phase": "x"}}
        with opened(tmp_path, labelled, nodes=["n1", "n2", "n1"]) as two:
            assert one.path == two.path

    def test_a_certification_that_was_changed_on_disk_is_refused(self, tmp_path):
        with opened(tmp_path) as evidence:
            path = os.path.join(evidence.path, "certification.json")
        text = Path(path).read_text()
        Path(path).write_text(text.replace("value > 9", "value > 1"))
        with pytest.raises(Conflict, match="was changed"):
            opened(tmp_path)

    def test_sealed_evidence_that_was_changed_is_not_taken_up(self, sealed, tmp_path):
        Path(sealed, "results.json").write_text('{"status": "pass"}')
        with pytest.raises(Tampered, match=r"results\.json: was changed"):
            opened(tmp_path)
        Path(sealed, "manifest.json").write_text("{")
        with pytest.raises(Tampered, match="is not a manifest"):
            opened(tmp_path)

    def test_documents_are_read_back(self, sealed, tmp_path):
        with opened(tmp_path) as evidence:
            assert evidence.read("results.json") == {"status": "fail"}
            assert evidence.read("inventory.json") is evidence.read("reports/report.md") is None

    def test_a_run_that_lost_a_part_is_run_again(self, tmp_path):
        with opened(tmp_path) as evidence:
            record(evidence)
            path = os.path.join(evidence.path, "runs", RUN["id"], "outcome.json")
            Path(path).write_text('[{"node": "n1"')
            assert evidence.finished(RUN) is None

    def test_one_process_at_a_time(self, tmp_path):
        with opened(tmp_path), pytest.raises(Conflict, match="in use"):
            opened(tmp_path)
        opened(tmp_path).close()

    def test_what_another_certification_measured_can_be_judged_anew(self, tmp_path):
        with opened(tmp_path) as evidence:
            record(evidence)
        assert room.earlier(str(tmp_path), RUN) == {"run": RUN, "parsed": {"lines": 1}, "observed": {"phase": "x"}}
        assert room.earlier(str(tmp_path), {**RUN, "spec": "sha256:2"}) is None
        assert room.earlier(str(tmp_path / "none"), RUN) is None

    def test_a_new_run_breaks_the_seal_until_it_is_sealed_again(self, sealed, tmp_path):
        with opened(tmp_path) as evidence:
            record(evidence, {**RUN, "id": "ba9876543210"})
            assert codes(sealed) == ["no-evidence"]
            evidence.seal()
        assert codes(sealed) == [] and codes(sealed, PUBLIC) == ["not-signed"]

    @pytest.mark.parametrize("step", range(50))
    def test_killed_anywhere_there_is_a_whole_outcome_or_none(self, tmp_path, step):
        with opened(tmp_path) as evidence:
            evidence.record(RUN, {"pod": "old"}, {}, {}, "old")
            evidence.seal()
        child = os.fork()
        if not child:
            die_after(step)
            with opened(tmp_path) as evidence:
                evidence.record(RUN, {"pod": "new"}, {}, {}, "new")
                evidence.seal()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL)
        with opened(tmp_path) as evidence:
            outcome = evidence.finished(RUN)
            assert outcome in ("old", "new", None)
            if outcome:
                log = Path(evidence.path, "runs", RUN["id"], "logs", "pod.log").read_text()
                assert log == outcome + "\n"
            assert not [name for name in os.listdir(evidence.path) if name.startswith(".")]
            evidence.seal()
        assert codes(evidence.path) == []


class TestVerify:
    def test_changes_are_found(self, sealed):
        log = os.path.join(sealed, "runs", RUN["id"], "logs", "gp-0123456789ab-0.log")
        Path(log).write_text("more\n")
        assert codes(sealed, PUBLIC) == ["changed-file"]
        os.unlink(log)
        assert codes(sealed) == ["missing-file"]
        Path(sealed, "added.json").touch()
        os.mkdir(os.path.join(sealed, "empty"))
        os.symlink("results.json", os.path.join(sealed, "link"))
        assert sorted(codes(sealed)) == ["extra-file", "extra-folder", "missing-file", "symlink"]

    def test_a_rewritten_manifest_does_not_help_without_the_key(self, sealed):
        path = os.path.join(sealed, "manifest.json")
        data = json.loads(Path(path).read_text())
        Path(sealed, "results.json").write_text("{}")
        data["files"]["results.json"] = room.closedworld.digest(os.path.join(sealed, "results.json"))
        Path(path).write_bytes(room.pretty(data))
        assert codes(sealed) == [] and codes(sealed, PUBLIC) == ["bad-signature"]

    def test_the_key_must_be_the_one(self, sealed):
        assert codes(sealed, OTHER_PUBLIC) == ["bad-signature"]
        os.unlink(os.path.join(sealed, "manifest.json.sig"))
        assert codes(sealed, PUBLIC) == ["not-signed"]
        with pytest.raises(InvalidDocument, match="public_key"):
            Path(sealed, "manifest.json.sig").write_text("eA==")
            verify(sealed, "nonsense")

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "null", '{"files": 1}', '{"kind": "EvidenceManifest", "files": {"a": "b"}}', "[" * 9999]
    )
    def test_no_manifest(self, sealed, text):
        Path(sealed, "manifest.json").write_text(text)
        assert codes(sealed) == ["bad-list"]

    def test_a_manifest_must_list_what_matters_and_nothing_outside(self, sealed):
        path = os.path.join(sealed, "manifest.json")
        data = json.loads(Path(path).read_text())
        data["files"]["../../etc/passwd"] = data["files"].pop("certification.json")
        Path(path).write_bytes(room.pretty(data))
        assert codes(sealed) == ["bad-list", "bad-list"]

    def test_no_folder(self, tmp_path):
        assert codes(tmp_path / "none") == codes(tmp_path) == ["no-evidence"]

    def test_a_bad_key_seals_nothing(self, tmp_path):
        with opened(tmp_path) as evidence:
            for key in ("", "nonsense", PUBLIC):
                with pytest.raises(InvalidDocument, match="signing_key"):
                    evidence.seal(key)
        assert codes(evidence.path) == ["no-evidence"]


class TestLogs:
    def kept(self, text):
        return list(storedlogs.stored(text))

    def test_credentials_are_masked(self):
        text = "export HF_TOKEN=hf_abc\nNCCL_DEBUG=INFO\napi_key: k1\nAuthorization: Bearer xyz\nbusbw = 1.5\n"
        assert self.kept(text) == [
            "export HF_TOKEN=***",
            "NCCL_DEBUG=***",
            "api_key: ***",
            "Authorization: ***",
            "busbw = 1.5",
        ]

    @pytest.mark.parametrize("text", [
        "tokens_per_sec_per_gpu: 6.859e+03 | x", "consumed tokens:      4194304 | y", '"tokens": 12, "n": 1', "k = v",
    ])  # fmt: skip
    def test_measurements_stay(self, text):
        assert self.kept(text) == [text]

    @pytest.mark.parametrize("text", ["token: 4711", "password=1234", "HF_TOKENS=12", "tokens: abc", "tokens: 12ab"])
    def test_a_number_may_be_a_credential(self, text):
        assert self.kept(text)[0].endswith("***")

    @pytest.mark.parametrize("mark", ["", "[1,0]<stdout>:", "node-a: ", "2026-03-06T09:34:56.1Z "])
    def test_environments_are_dropped(self, mark):
        lines = [
            '{ "args": [',
            '"-b" ],',
            ' "env": [',
            '  "http_proxy=http://u:p@h",',
            '  "x=]",',
            '  "Y=1"',
            " ],",
            ' "nccl": 22807}',
        ]
        kept = self.kept("\n".join(mark + line for line in lines))
        wanted = [mark + line for line in ('{ "args": [', '"-b" ],', ' "env": [', " ],", ' "nccl": 22807}')]
        assert [line.replace(" ", "") for line in kept] == [line.replace(" ", "") for line in wanted]

    def test_environments_in_one_line(self):
        line = '{"env": ["a=]b", "c=\\"]"], "n": 1, "environment": {"home": "/root"}, "m": 2}'
        assert self.kept(line) == ['{"env": [], "n": 1, "environment": {}, "m": 2}']

    def test_other_writers_are_kept_meanwhile(self):
        text = '[1,0]<stdout>:"env": [\n[1,1]<stdout>:hello\n[1,0]<stdout>:"p=x",\n[1,0]<stdout>:]\n'
        assert self.kept(text) == ['[1,0]<stdout>:"env": [', "[1,1]<stdout>:hello", "[1,0]<stdout>:]"]

    @pytest.mark.parametrize(
        "text", ["", "\x00\x1b[31mred\x1b[0m", b"\xff\xfe\r\nx", ["a\n", "b"], '"env": [', '"env": ["']
    )
    def test_any_text(self, text):
        assert all("\n" not in line for line in self.kept(text))

    def test_blobs_are_no_burden(self):
        kept = self.kept("a-." * 300_000)
        assert len(kept) == 1 and len(kept[0]) < 300


def test_inventory_tells_what_is_known_and_nothing_else():
    node = {
        "metadata": {
            "name": "n1",
            "labels": {"nvidia.com/cuda.driver.major": "580", "nvidia.com/cuda.driver.minor": "105"},
        },
        "status": {"nodeInfo": {"kernelVersion": "6.8.0", "bootID": "b-1", "osImage": "", "kubeletVersion": "v1.34.1"}},
    }
    parsed = {"runs": [{"ncclVersion": "2.28.7"}, {"ncclVersion": None}]}
    made = inventory.build([node], [(RUN, parsed), (RUN, None)], {"n1": {"firmware": "28.43", "odd": 1}, "n9": {}})
    assert made == {
        "n1": {
            "driver": "580.105", "kernel": "6.8.0", "bootId": "b-1", "kubelet": "v1.34.1", "nccl": ["2.28.7"],
            "firmware": "28.43",
        },
        "n2": {"nccl": ["2.28.7"]},
    }  # fmt: skip
