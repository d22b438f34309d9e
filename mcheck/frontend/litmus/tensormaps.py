"""The parser of tensor map declarations, with the field names of ``tensormap.replace`` (PTX ISA 5.5, 9.7.9.28)."""

from __future__ import annotations

from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.expressions import parse_constant, parse_expression
from mcheck.frontend.litmus.lexer import Tokens
from mcheck.frontend.litmus.scope import Scope
from mcheck.ir.expr import Expr
from mcheck.ir.memory import TensorMapSpec

ELEMENT_TYPES = (
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz",
    "b4x16", "b4x16_p64", "b6x16_p32", "b6p2x16",
)  # fmt: skip
CHOICES: dict[str, tuple[str, ...]] = {
    "elemtype": ELEMENT_TYPES,
    "interleave_layout": ("none", "16B", "32B"),
    "swizzle_mode": ("none", "32B", "64B", "128B", "96B"),
    "swizzle_atomicity": ("16B", "32B", "32B+8B", "64B"),
    "fill_mode": ("zero", "nan"),
}
TILED = ("box_dim",)
IM2COL = ("pixel_box_lower_corner", "pixel_box_upper_corner", "channels_per_pixel", "pixels_per_column")
LISTS = ("global_dim", "global_stride", "element_stride", "box_dim", "pixel_box_lower_corner", "pixel_box_upper_corner")
NUMBERS = ("rank", "channels_per_pixel", "pixels_per_column")
FIELDS = frozenset(("global_address", *CHOICES, *LISTS, *NUMBERS))


@dataclass(slots=True)
class MapFields:
    """The fields of a tensor map as written; its global address is known only after the layout."""

    span: Span | None
    address: Expr | None = None
    address_span: Span | None = None
    words: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    lists: dict[str, tuple[int, ...]] = field(default_factory=dict)
    spans: dict[str, Span | None] = field(default_factory=dict)

    def spec(self, address: int) -> TensorMapSpec:
        """The checked tensor map, with ``global_address`` resolved to ``address``."""
        rank = self.numbers["rank"]
        return TensorMapSpec(
            global_address=address,
            elemtype=self.words["elemtype"],
            rank=rank,
            global_dim=self.lists["global_dim"],
            global_stride=self.lists["global_stride"],
            element_stride=self.lists.get("element_stride", (1,) * rank),
            box_dim=self.lists.get("box_dim", ()),
            interleave_layout=self.words.get("interleave_layout", "none"),
            swizzle_mode=self.words.get("swizzle_mode", "none"),
            swizzle_atomicity=self.words.get("swizzle_atomicity", "16B"),
            fill_mode=self.words.get("fill_mode", "zero"),
            pixel_box_lower_corner=self.lists.get("pixel_box_lower_corner", ()),
            pixel_box_upper_corner=self.lists.get("pixel_box_upper_corner", ()),
            channels_per_pixel=self.numbers.get("channels_per_pixel"),
            pixels_per_column=self.numbers.get("pixels_per_column"),
        )


def parse_tensor_map(tokens: Tokens, scope: Scope) -> MapFields:
    """Parse ``{ field = value, … }`` and check that the fields make a tensor map."""
    start = tokens.at
    tokens.expect("{", "the fields of a tensor map in braces")
    found = MapFields(tokens.span(start))
    while tokens.text != "}":
        at = tokens.at
        name = tokens.name("a field of a tensor map")
        span = tokens.span(at)
        if name not in FIELDS:
            hint = suggest(name, FIELDS)
            raise problem("LIT033", span, found=f"'{name}'", expected="a field name of tensormap.replace", hint=hint)
        if name in found.spans:
            raise problem("LIT035", span, field=name)
        found.spans[name] = span
        tokens.expect("=")
        _field(tokens, scope, found, name)
        if not tokens.accept(","):
            break
    tokens.expect("}", "',' or '}'")
    check_fields(found)
    return found


def _field(tokens: Tokens, scope: Scope, found: MapFields, name: str) -> None:
    at = tokens.at
    if name == "global_address":
        tokens.accept("&")
        found.address = parse_expression(tokens, scope)
        found.address_span = tokens.span_since(at)
    elif name in CHOICES:
        word = ""
        while tokens.text not in (",", "}", ";", ""):
            word += tokens.text
            tokens.at += 1
        choices = CHOICES[name]
        if word.isdigit() and len(word) < 3 and int(word) < len(choices):
            word = choices[int(word)]
        matching = [choice for choice in choices if choice.lower() == word.lower().removeprefix(".")]
        if not matching:
            raise problem(
                "LIT036", tokens.span_since(at) if word else tokens.span(), found=f"'{word}'", field=name,
                expected="one of " + ", ".join(choices), hint=suggest(word, choices),
            )  # fmt: skip
        found.words[name] = matching[0]
    elif name in LISTS:
        tokens.expect("{", "a list in braces")
        values: list[int] = []
        while tokens.text != "}":
            values.append(parse_constant(tokens, scope, f"an entry of {name}"))
            if not tokens.accept(","):
                break
        tokens.expect("}", "',' or '}'")
        found.lists[name] = tuple(values)
        found.spans[name] = tokens.span_since(at)
    else:
        found.numbers[name] = parse_constant(tokens, scope, name)
        found.spans[name] = tokens.span_since(at)


def check_fields(found: MapFields) -> None:
    """Raise ``InputError`` for a missing field, a wrong length, or an entry that is not positive (PTX ISA 5.5)."""
    im2col = [name for name in IM2COL if name in found.spans]
    if im2col and "box_dim" in found.spans:
        raise problem("LIT038", found.spans["box_dim"], field="box_dim", kind="an im2col")
    required = ["global_address", "elemtype", "rank", "global_dim", "global_stride", *(IM2COL if im2col else TILED)]
    for name in required:
        if name not in found.spans:
            raise problem("LIT034", found.span, field=name)
    rank = found.numbers["rank"]
    lowest = 3 if im2col else 1
    if not lowest <= rank <= 5:
        raise problem("LIT036", found.spans["rank"], found=rank, field="rank", expected=f"{lowest} to 5")
    lengths = {
        "global_dim": rank, "global_stride": rank - 1, "element_stride": rank, "box_dim": rank,
        "pixel_box_lower_corner": rank - 2, "pixel_box_upper_corner": rank - 2,
    }  # fmt: skip
    for name, wanted in lengths.items():
        values = found.lists.get(name)
        if values is None:
            continue
        if len(values) != wanted:
            raise problem("LIT037", found.spans[name], field=name, found=len(values), rank=rank, wanted=wanted)
        least = 0 if name == "global_stride" else 1  # of a dimension that repeats what it has, or has one slice
        if not name.startswith("pixel_box") and min(values, default=1) < least:
            expected = "positive numbers" if least else "numbers from 0 on"
            raise problem("LIT036", found.spans[name], found=min(values), field=name, expected=expected)
    for name in ("channels_per_pixel", "pixels_per_column"):
        if name in found.numbers and found.numbers[name] < 1:
            raise problem(
                "LIT036", found.spans[name], found=found.numbers[name], field=name, expected="a positive number"
            )
