"""An extension that was built with the old C++ string ABI meets a torch with the new one: the same function is there, with
std::__cxx11::basic_string in place of std::string."""
from cudiag_scenario import *

DECLARED = """#include <string>
namespace c10::detail { void torchCheckFail(const char*, const char*, unsigned, const std::string&); }"""

world = World(*torch_wheels())
extension = world.extension("flash_attn_2_cuda", [], "-D_GLIBCXX_USE_CXX11_ABI=0", world.site / "torch/lib/libc10.so",
                            declares=DECLARED, runs='(c10::detail::torchCheckFail("", "", 0, std::string()), 0)')

run = world.under_shim(world.python, "-c", "import torch, flash_attn_2_cuda")
run.fails_with("torchCheckFailEPKcS2_jRKSs")

finding = run.said("loader-abi-mismatch", symbol=ends("torchCheckFailEPKcS2_jRKSs"), file=extension,
                   exported_instead=has("std::__cxx11::basic_string"), string_abi=has("old"))
finding.says("2.13.0")
finding.proposes(r"[Bb]uild|no-build-isolation")
finding.does_not_propose(r"pip install .*nvidia-", "LD_LIBRARY_PATH")
