"""Parts that several of our kinds share, named as Kubernetes names them: selectors, conditions, windows."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta

from virt_steward.apis.schema import ATOMIC, INT32, ApiStruct, matching, rule
from virt_steward.objects.durations import GRAMMAR, LONGEST_TEXT
from virt_steward.objects.selectors import requirement

Time = Annotated[datetime, Meta(tz=True)]

MOST_APPROVERS = 10
"""People whose approval can be required."""
NAMESPACE_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

NamespaceName = Annotated[
    str,
    Meta(min_length=1, max_length=63),
    matching(NAMESPACE_NAME, "a namespace is named in lower case letters, digits and '-'"),
]

Duration = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_TEXT),
    matching(GRAMMAR, "a duration is made of numbers with the units d, h, m, s or ms, such as 7d, 24h, 1h30m or 1.5h"),
]


def _cron_field(value: str) -> str:
    """A comma-separated list of values, ranges and `*`, each with an optional step."""
    element = rf"(\*|({value})(-({value}))?)(/[1-9][0-9]?)?"
    return f"{element}(,{element})*"


_CRON = " +".join(
    _cron_field(value)
    for value in (
        "[0-5]?[0-9]",
        "[01]?[0-9]|2[0-3]",
        "0?[1-9]|[12][0-9]|3[01]",
        "0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec",
        "[0-7]|sun|mon|tue|wed|thu|fri|sat",
    )
)

Schedule = Annotated[
    str,
    Meta(min_length=9, max_length=128),
    matching(
        f"(?i:{_CRON})",
        "a schedule is five cron fields: minute, hour, day of month, month, day of week, such as 0 22 * * FRI",
    ),
]


class RequiredApprovals(ApiStruct, frozen=True):
    """How many people must approve."""

    required: Annotated[
        int, Meta(description="How many people must approve, each of them once.", ge=1, le=MOST_APPROVERS), INT32
    ]


class WindowSpec(ApiStruct, frozen=True):
    """A time that comes again and again."""

    schedule: Annotated[
        Schedule, Meta(description="When the window opens: minute, hour, day of month, month and day of week.")
    ]
    duration: Annotated[
        Duration,
        rule("self.matches('[1-9]')", "a window lasts longer than nothing"),
        Meta(description="How long it stays open, such as 4h or 1h30m."),
    ]
    time_zone: Annotated[
        str,
        Meta(
            description="The IANA time zone in which the schedule is read. An unknown one is reported as a condition.",
            min_length=1,
            max_length=64,
        ),
        matching("[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", "a time zone is an IANA name, such as Europe/Oslo"),
    ] = "UTC"


GateName = Annotated[
    str,
    Meta(min_length=1, max_length=63),
    matching("[a-z0-9]([-a-z0-9]*[a-z0-9])?", "a gate is named in lower case letters, digits and '-'"),
]


class FreezeOverride(ApiStruct, frozen=True):
    """A person has let a change begin in spite of a freeze."""

    by: Annotated[str, Meta(description="Who did so.", max_length=253)]
    at: Annotated[Time, Meta(description="When the override was observed.")]
    comment: Annotated[str, Meta(description="Why.", max_length=1024)] = ""


class Requirement(ApiStruct, frozen=True):
    """One condition on labels."""

    rules = (
        rule(
            "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0"
            " : !has(self.values) || size(self.values) == 0",
            "In and NotIn need values, Exists and DoesNotExist take none",
        ),
    )

    key: Annotated[str, Meta(description="The label.", min_length=1, max_length=317)]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"], Meta(description="How the label relates to the values.")
    ]
    values: Annotated[
        tuple[Annotated[str, Meta(max_length=63)], ...],
        Meta(description="Values for In and NotIn.", max_length=50),
        ATOMIC,
    ] = ()

    def holds_for(self, labels: Mapping[str, str]) -> bool:
        return requirement(self.key, self.operator, self.values).holds_for(labels)


class LabelSelector(ApiStruct, frozen=True):
    """Which objects are meant. All that is listed must hold; an empty selector means all objects."""

    match_labels: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]],
        Meta(description="Labels that an object must have, with exactly these values.", max_length=50),
    ] = msgspec.field(default_factory=dict)
    match_expressions: Annotated[
        tuple[Requirement, ...], Meta(description="Further conditions on labels.", max_length=50), ATOMIC
    ] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.match_labels.items() <= labels.items() and all(
            one.holds_for(labels) for one in self.match_expressions
        )


ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(ApiStruct, frozen=True):
    """One aspect of an object's state."""

    type: Annotated[str, Meta(description="Which aspect.", min_length=1, max_length=316)]
    status: Annotated[ConditionStatus, Meta(description="Whether it holds.")]
    reason: Annotated[
        str,
        Meta(
            description="Why, as one word for machines.",
            min_length=1,
            max_length=1024,
            pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
    ]
    message: Annotated[str, Meta(description="Why, as a sentence for people.", max_length=32768)]
    last_transition_time: Annotated[Time, Meta(description="Since when the status is what it is.")]
    observed_generation: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="The generation of the object that this was said about."),
    ] = None

    def carrying_on(self, before: Iterable[Self]) -> Self:
        """The same, with the transition time of its like before: it moves only when the status does."""
        old = next((one for one in before if one.type == self.type and one.status == self.status), None)
        return msgspec.structs.replace(self, last_transition_time=old.last_transition_time) if old else self
