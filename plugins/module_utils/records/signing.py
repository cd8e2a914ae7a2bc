# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Ed25519 signature over a list of digests, and so over every file that the list names."""

from __future__ import annotations

import base64
import binascii

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, Unavailable

_CREATE = "openssl genpkey -algorithm ed25519"


def sign(content: bytes, private_key: str) -> bytes:
    """The content of the signature's file: base64 and a line break. `private_key` is PEM, without a passphrase.

    The same content and key give the same signature. Raises InvalidDocument or Unavailable.
    """
    return base64.b64encode(_private(private_key).sign(content)) + b"\n"


def check(content: bytes, signature: bytes, public_key: str, name: str, hint: str = "") -> list[Problem]:
    """Nothing when the signature belongs to the content and the PEM key. Raises InvalidDocument for a bad key.

    `name` is the file that was signed; its signature is beside it, with the suffix .sig.
    """
    key = _public(public_key)
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(base64.b64decode(signature.strip(), validate=True), content)
    except (InvalidSignature, binascii.Error, ValueError):
        what = f"is not the signature of {name} by this key"
        return [Problem("bad-signature", what, f"{name}.sig", hint=hint)]
    return []


def _private(text: str):
    serialization, ed25519, unsupported = _library()
    try:
        key = serialization.load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, unsupported) as error:
        raise _bad("signing_key", "is not a private key in PEM form without a passphrase", _CREATE) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _bad("signing_key", "is not an Ed25519 key", _CREATE)
    return key


def _public(text: str):
    serialization, ed25519, unsupported = _library()
    try:
        key = serialization.load_pem_public_key(text.encode())
    except (ValueError, TypeError, unsupported) as error:
        raise _bad("public_key", "is not a public key in PEM form", "openssl pkey -in KEY -pubout") from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise _bad("public_key", "is not an Ed25519 key", _CREATE)
    return key


def _bad(option: str, what: str, hint: str) -> InvalidDocument:
    return InvalidDocument(Problem("bad-key", f"the key {what}", path=option, hint=hint))


def _library():
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        hint = "pip install cryptography"
        raise Unavailable("signatures need the Python package cryptography", hint=hint) from error
    return serialization, ed25519, UnsupportedAlgorithm
