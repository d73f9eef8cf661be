"""Maths as MathML, written when the pages are built: nothing to download, and nothing to run in the browser."""

import re

import latex2mathml.converter
from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util.math import get_node_equation_number


def convert(latex, display="inline"):
    """MathML, with the thin space that belongs between ln and its argument."""
    markup = latex2mathml.converter.convert(latex, display=display)
    return re.sub(r"(<m([io])>(?:ln|log)</m\2>)(?!<mo|<mrow><mo)", r'\1<mspace width="0.17em"/>', markup)


def _inline(self, node):
    self.body.append(f'<span class="math">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def _block(self, node):
    number = f'<span class="eqno">({get_node_equation_number(self, node)})</span>' if node["number"] else ""
    self.body.append(f'<div class="math">{number}{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


class _AbsoluteValues(SphinxTransform):
    """In plain text |a / b| is an absolute value; these pages define no substitutions."""

    default_priority = 200  # before docutils looks for one of that name, at 220

    def apply(self):
        for node in list(self.document.findall(nodes.substitution_reference)):
            node.replace_self(nodes.Text(f"|{node.astext()}|"))


def setup(app):
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    app.add_transform(_AbsoluteValues)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
