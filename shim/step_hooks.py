# Run once in the program's interpreter, in a namespace of its own, when torch.optim is there (CUDIAG_PROFILE=optimizer). Given are
# before(index), after(index), describe(text) -> index and end(), functions in C. Imports nothing that is not imported; gives True when
# nothing is left to be done, and text that says why not.
#
# The hooks are functions of Python: of one in C Dynamo warns, and breaks the graph of a compiled step. In a step that Dynamo traces
# they do nothing: it takes is_compiling() for True, and sees no function of C.
import sys


def cudiag_register():
    modules = sys.modules
    torch, module, weakref = modules.get("torch"), modules.get("torch.optim.optimizer"), modules.get("weakref")
    if torch is None or module is None or weakref is None:
        return False
    if getattr(getattr(torch, "__spec__", None), "_initializing", False):
        return False
    add_before = getattr(module, "register_optimizer_step_pre_hook", None)
    add_after = getattr(module, "register_optimizer_step_post_hook", None)
    compiling = getattr(modules.get("torch.compiler"), "is_compiling", None)
    if add_before is None or add_after is None or compiling is None:
        return "this torch has no hooks for the steps of all optimizers (2.1 is the first that has them)"
    known = {}
    MOST_RUNS = 1000    # of parameters of one size: of more the sizes are not told
    get = known.get

    def of_parameters(groups):
        kinds, types, runs = {}, {}, {}
        for group in groups:
            for parameter in group["params"]:
                kind = (str(parameter.dtype).replace("torch.", ""), str(parameter.device))
                local = getattr(parameter, "_local_tensor", parameter)    # of a DTensor: what is computed here
                tensors, elements = kinds.get(kind, (0, 0))
                count = local.numel()
                kinds[kind] = (tensors + 1, elements + count)
                sizes = runs.setdefault(kind, [])
                if sizes and sizes[-1][0] == count:
                    sizes[-1][1] += 1
                elif len(sizes) <= MOST_RUNS:
                    sizes.append([count, 1])
                types[type(parameter).__name__] = True
        return kinds, types, {kind: sizes for kind, sizes in runs.items() if len(sizes) <= MOST_RUNS}

    def description_of(optimizer):
        cls = type(optimizer)
        defaults, group = optimizer.defaults, optimizer.param_groups[0]
        lines = [("class", cls.__module__ + "." + cls.__qualname__)]
        lines += [("base", base.__module__ + "." + base.__qualname__) for base in cls.__mro__[1:] if base not in (object, module.Optimizer)]
        lines += [(key, str(group.get(key, defaults.get(key)))) for key in ("fused", "foreach", "capturable", "amsgrad", "momentum")
                  if key in group or key in defaults]
        kinds, types, runs = of_parameters(optimizer.param_groups)
        lines += [("parameters", *kind, str(tensors), str(elements)) for kind, (tensors, elements) in kinds.items()]
        lines += [("sizes", *kind, " ".join(f"{size}*{count}" for size, count in sizes)) for kind, sizes in runs.items()]
        lines += [("type", name) for name in types if name not in ("Parameter", "Tensor")]
        if any(device == "cpu" for _, device in kinds):
            lines += [("threads", str(torch.get_num_threads())), ("cpus", str(len(modules["os"].sched_getaffinity(0))))]
        lines += [("library", value.__file__) for value in vars(optimizer).values() if type(value) is type(sys) and getattr(value, "__file__", None)]
        if sys.gettrace() is not None:
            lines += [("debugger", "pydevd" if "pydevd" in modules else "sys.settrace")]
        elif "pydevd" in modules:
            lines += [("debugger", "pydevd")]
        lines += [("torch", str(torch.__version__)), ("cuda", str(getattr(torch.version, "cuda", None)))]
        return "\n".join("\t".join(part.replace("\t", " ").replace("\n", " ") for part in line) for line in lines)

    def describe_new(optimizer):
        try:
            index = describe(description_of(optimizer))
        except Exception:
            index = describe("class\t" + type(optimizer).__module__ + "." + type(optimizer).__qualname__)
        known[id(optimizer)] = entry = (weakref.ref(optimizer), index)
        return entry

    def cudiag_before_step(optimizer, args, kwargs):
        if compiling():
            return
        entry = get(id(optimizer))
        if entry is None or entry[0]() is not optimizer:
            entry = describe_new(optimizer)
        before(entry[1])

    def cudiag_after_step(optimizer, args, kwargs):
        if compiling():
            return
        entry = get(id(optimizer))
        if entry is not None:
            after(entry[1])

    add_before(cudiag_before_step)
    add_after(cudiag_after_step)
    if "atexit" in modules:
        modules["atexit"].register(end)
    return True


result = cudiag_register()
