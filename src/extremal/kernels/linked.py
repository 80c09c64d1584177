"""Kernels within other kernels: numba compiles them for the linker only.

numba makes machine code of every function that it compiles. A kernel that another kernel calls becomes part of that kernel's
code, and its own machine code and its wrapper for Python are never used. Here a kernel has two forms. Python calls the first one,
which is a dispatcher of numba as usual. Other kernels find the second one, which has neither machine code nor a wrapper.

Short loops are optimised alone before they are linked, because the optimiser knows more about their arrays there. Long kernels
with few such loops are optimised only as a part of the kernel around.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher


class LinkedCode(JITCodeLibrary):
    """Code without machine code of its own."""

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> Any:
        """What numba asks to tell the machine code its environment: nothing has to be told."""
        return self

    def set_env(self, *_: object) -> None:
        """Do nothing."""

    def get_pointer_to_function(self, name: str) -> int:
        """Null, as for every function without machine code."""
        return 0


class PartOfCode(LinkedCode):
    """The same, optimised only as a part of the code that it is linked into."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass


class Within(Compiler):
    """Compile a kernel for other kernels."""

    library = LinkedCode

    def define_pipelines(self) -> Any:
        """numba's passes, which write into a library of this kind."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class PartOf(Within):
    """The same without optimising it alone."""

    library = PartOfCode


class TwoForms(CPUDispatcher):
    """A kernel that Python calls; kernels that call it find its other form."""

    compiler = Within  # of the other form

    @cached_property
    def within(self) -> CPUDispatcher:
        """The form for other kernels."""
        options = self.targetoptions | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return CPUDispatcher(self.py_func, targetoptions=options, pipeline_class=self.compiler)

    @property
    def _numba_type_(self) -> types.Dispatcher:
        """What numba asks when a kernel names this one."""
        return types.Dispatcher(self.within)
