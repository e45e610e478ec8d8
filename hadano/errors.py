"""The six error codes, and the one exception that carries them to a client.

A message names the field and what is wrong with it, and nothing internal: no path, no SQL, no
trace. What a person needs to mend a bug goes to standard error, not in here.
"""

from enum import StrEnum
from typing import Final


class Code(StrEnum):
    """The closed set of the contract, section 4. A seventh code is a defect."""

    VALIDATION = "E_VALIDATION"
    TOO_LARGE = "E_TOO_LARGE"
    NOT_FOUND = "E_NOT_FOUND"
    TIMEOUT = "E_TIMEOUT"
    INTEGRITY = "E_INTEGRITY"
    INTERNAL = "E_INTERNAL"


#: Messages can quote a client's own words (the name of an unknown parameter); no more than this.
MESSAGE_CODEPOINTS_MAX: Final = 500


class HadanoError(Exception):
    """A call that cannot be answered: a code, and one line for the client.

    The message is made safe to encode (a lone surrogate is spelled out) and cut to
    `MESSAGE_CODEPOINTS_MAX`.
    """

    def __init__(self, code: Code, message: str) -> None:
        safe = message.encode("utf-8", "backslashreplace").decode()
        if len(safe) > MESSAGE_CODEPOINTS_MAX:
            safe = safe[: MESSAGE_CODEPOINTS_MAX - 1] + "…"
        super().__init__(f"{code}: {safe}")
        self.code = code
        self.message = safe


class SettingsError(ValueError):
    """An environment variable that cannot be used: one line, for standard error; exit status 2."""


def invalid(field: str, what: str) -> HadanoError:
    """E_VALIDATION about one field."""
    return HadanoError(Code.VALIDATION, f"{field}: {what}")


def too_large(field: str, size: int, most: int, unit: str) -> HadanoError:
    """E_TOO_LARGE: what was sent, what is allowed, and in which unit both are counted."""
    return HadanoError(Code.TOO_LARGE, f"{field}: {size:,} {unit}, at most {most:,} are allowed")


def no_document(id: str) -> HadanoError:
    """E_NOT_FOUND for a document id, in the same words whichever tool asked."""
    return HadanoError(Code.NOT_FOUND, f"id: there is no document {id!r}")
