"""Kernels within other kernels: numba compiles them for the linker only.

numba makes machine code of every function that it compiles. A kernel that another kernel calls becomes part of that kernel's
code, so its own machine code, and its form for Python, are never used. Here a kernel has two forms. Python calls the first one,
which is a dispatcher of numba as usual. Kernels find the second one, whose library is neither optimised alone nor becomes machine
code: the kernel around is optimised as a whole, and in one go.

A numba that does not know some of these methods compiles as usual, and takes longer.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher


class OwnOrder(JITCodeLibrary):
    """Code of sums in any order: it is optimised alone, so that all callers add in the same order."""

    def _finalize_final_module(self) -> None:
        """Omit the machine code."""
        self._finalized = True

    @property
    def codegen(self) -> Any:
        """What numba asks to set the environment of the machine code."""
        return self

    def set_env(self, *_: object) -> None:
        """Do nothing: the code that this library is linked into has the environment."""

    def get_pointer_to_function(self, _name: str) -> int:
        """Null, as for a function without machine code."""
        return 0


class Linked(OwnOrder):
    """All other code: it is optimised as a part of the kernel around."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass


class Within(Compiler):
    """Compile for the linker only."""

    def define_pipelines(self) -> Any:
        state = self.state
        library = OwnOrder if "reassoc" in state.flags.fastmath.flags else Linked
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class TwoForms(CPUDispatcher):
    """A kernel that Python calls; kernels that call it find its other form."""

    @cached_property
    def within(self) -> CPUDispatcher:
        """The form for other kernels."""
        options = self.targetoptions | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return CPUDispatcher(self.py_func, targetoptions=options, pipeline_class=Within)

    @property
    def _numba_type_(self) -> types.Dispatcher:
        """What numba asks when a kernel names this one."""
        return types.Dispatcher(self.within)
