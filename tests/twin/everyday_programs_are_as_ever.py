"""Shells, interpreters, compilers and pipes under the shim do what they do without it, and leave no record; but a
build that failed leaves its journal, for `cudiag report`."""
from twin import *

if MACHINE:
    cannot_run_here("qemu's guest cannot exec without binfmt_misc")
bed = Bed()
(bed.root / "hello.c").write_text("#include <stdio.h>\nint main(void) { puts(\"hello\"); return 3; }\n")
(bed.root / "wrong.c").write_text("#include <absent.h>\n")
(bed.root / "Makefile").write_text("all: hello\n\t./hello\nhello: hello.c\n\tgcc -o $@ $<\n")
python = sys.executable
COMMANDS = [
    ["true"], ["false"], ["sh", "-c", "exit 9"], ["bash", "-c", "exit 9"],
    ["dash", "-c", "for i in 1 2 3; do (exit $i); echo $?; done; kill -9 $$"],
    ["bash", "-c", "set -o pipefail; ls /absent | sort | head -1; echo ${PIPESTATUS[@]}; (kill -SEGV $BASHPID); echo $?; exec sh -c 'exit 4'"],
    ["bash", "-c", "trap 'echo interrupted' INT; kill -INT $$; sleep 0.1 & wait; jobs; echo $?; nosuchprogram; echo $?"],
    ["env"], ["sh", "-c", "env | sort; ulimit -a; umask; pwd"], ["gcc", "-o", "hello", "hello.c"], ["./hello"],
    ["gcc", "-c", "wrong.c"], ["make", "-s"], ["seq", "3"], ["xargs", "-n1", "false"], ["timeout", "0.1", "sleep", "5"], ["nice", "true"],
    [python, "-c", "print(1)"], [python, "-c", "raise SystemExit(3)"], [python, "-c", "1/0"], [python, "-c", "import os; os._exit(4)"],
    [python, "-c", "import os; os.abort()"], [python, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"],
    [python, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"],
    [python, "-c", "import subprocess as s; print(s.run(['sh', '-c', 'kill -9 $$']).returncode, s.call(['false']), s.getoutput('echo x'))"],
    [python, "-c", "import subprocess as s\ntry: s.run(['/absent/program'])\nexcept OSError as e: print(e)"],
    [python, "-c", "import subprocess as s; print(s.run(['true'], preexec_fn=lambda: None, close_fds=True).returncode)"],
    [python, "-c", "import os; print(os.system('exit 3'), os.popen('echo y').read(), os.WIFSIGNALED(os.system('kill -9 $$')))"],
    [python, "-c", "import multiprocessing as m\nif __name__ == '__main__':\n p = m.Process(target=print, args=(5,)); p.start(); p.join(); print(p.exitcode)"],
    [python, "-c", "import os, signal\npid = os.fork()\nif pid == 0: os.kill(os.getpid(), signal.SIGKILL)\nprint(os.waitpid(pid, 0)[1], os.waitid)"],
    [python, "-c", "import signal; print(signal.signal(signal.SIGINT, signal.SIG_DFL), signal.getsignal(signal.SIGINT))"],
    [python, "-c", "import ctypes, ctypes.util; print(ctypes.CDLL(None), ctypes.util.find_library('m'), ctypes.CDLL('libm.so.6').cos)"],
    [python, "-c", "import faulthandler, os, signal; faulthandler.enable(); os.kill(os.getpid(), signal.SIGSEGV)"],
]
for command in COMMANDS:
    # "<CDLL None, handle 7f…>" and pids differ from run to run; a shell tells pids of what was killed.
    different = lambda text: re.sub(r"0x[0-9a-f]+|handle [0-9a-f]+|\b\d{3,}\b|LD_PRELOAD=.*\n|CUDIAG.*\n|^_=.*\n", "", text, flags=re.M)
    both = bed.twin(*command, same=different)
    left = [file for file in both.runs.glob("*/*") if command[0] != "make" or file.name != "build.journal"]
    assert left == [], (command, left)
