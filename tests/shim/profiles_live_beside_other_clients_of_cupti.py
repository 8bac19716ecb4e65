"""Over doubles of the driver and of CUPTI: what a profile holds, that a client like torch.profiler gets all that it gets alone, in either
order, in several sessions and across cuptiFinalize; what is told of losses, of a refusal, and of a CUPTI that somebody took."""
import fake_driver
from twin import *

bed = Bed()
program = bed.program("profiled.c")
driver = fake_driver.build(bed)
cupti = bed.shared("libcupti.so.13", "fake_cupti.c")
client = bed.shared("libclient.so", "cupti_client.c", cupti, f"-Wl,-rpath,{bed.root}")
if not (BIN / "libcudiag-cupti.so").exists():
    cannot_run_here("no libcudiag-cupti.so")


count = 0


def story(*words, profile="launches", same=True, **env):
    """Runs it alone and profiled; gives what it said, and the profiles."""
    global count
    count += 1
    runs, env = bed.root / f"profiled-{count}", {"FAKE_DRIVER_QUIET": 1, **env}
    alone = bed.run(program, driver, cupti, client, *words, env=env, shim=False)
    under = bed.run(program, driver, cupti, client, *words, env={**env, "CUDIAG_PROFILE": profile}, runs=runs)
    assert alone.status == under.status == 0, (words, alone, under)
    assert not same or (alone.stdout, alone.stderr) == (under.stdout, under.stderr), (words, alone, under)
    return under.stdout, [read(path) for path in runs.glob("*/*.prof")]


def one(profiles):
    assert len(profiles) == 1, profiles
    return profiles[0]


def kind(profile, name):
    return [entry for entry in profile if entry.kind == name]


def records(profile):
    return [record for entry in kind(profile, "device_records") for record in entry["records"]]


def window(profile):
    begins, ends = [[entry for entry in kind(profile, "profile_window") if entry["status"] == status] for status in (1, 0)]
    assert len(begins) == len(ends) == 1, (begins, ends)
    return begins[0], ends[0]


def complete(profile, launches, dropped=0):
    begin, end = window(profile)
    kernels = [record for record in records(profile) if record["kind"] == 0]
    assert end["count"] - begin["count"] == launches == len(kernels), (begin, end, len(kernels))
    assert end["dropped"] == dropped and end["not_kept"] == 0 and end["kept"] == len(records(profile)), end
    return kernels


# Alone: each launch has its record; the first kernel was looked up before CUPTI recorded. The end leaves nothing of CUPTI behind.
said, profiles = story("look", "40", "copy")
profile = one(profiles)
kernels = complete(profile, 40)
assert kernels[0]["blocks"] == 16 and kernels[0]["threads"] == 256 and kernels[0]["stream"] == 7, kernels[0]
assert [k["correlation"] for k in kernels] == sorted(k["correlation"] for k in kernels)
copy, = [record for record in records(profile) if record["kind"] == 1]
assert copy["bytes"] == 4096 and copy["name"] == 1, copy
name, = kind(profile, "profile_name")
assert (name["index"], name["name"]) == (0, "_Z4goodPfi") and kernels[0]["name"] == 0
begin, _ = window(profile)
assert begin["path"] == str(cupti) and begin["cupti_version"] == 130001, begin
device, = kind(profile, "profile_device")
assert device["name"] == "Double 9000", device

# More than one buffer of ours holds.
complete(one(story("look", "12000")[1]), 12000)

# A client: before, in the middle, twice, and across its cuptiFinalize. Both have all, and it sees what it sees without us.
for words, launches in ((("look", "5", "start", "30", "stop", "7"), 42), (("start", "look", "30", "stop", "7"), 37),
                        (("look", "5", "start", "30", "stop", "7", "start", "50", "stop", "3"), 95),
                        (("look", "5", "start", "30", "stop", "2", "start", "1", "stop"), 38),
                        (("start", "stop", "look", "5", "start", "60", "stop", "4"), 69)):
    said, profiles = story(*words)
    complete(one(profiles), launches)
    assert "0 buffers of others" in said, said
    _, end = window(one(profiles))
    assert end["shared"] == 1, end
# A client may set the clock of all records, ours of before included: they are fetched before, with their times.
kernels = complete(one(story("look", "5", "start", "30", "stop", "7", CLIENT_CLOCK="1")[1]), 42)
assert all(k["begin"] > 0 for k in kernels) and [k["begin"] < 1 << 60 for k in kernels] == [False] * 5 + [True] * 37, kernels
said, profiles = story("look", "5", "start", "30", "stop", "finalize", "7", "start", "20", "stop", "4", same=False)
complete(one(profiles), 66)
assert "the client got 30 kernels" in said and "the client got 20 kernels" in said and "finalize: 0" in said, said
assert "cuptiFinalize was called" not in said, said
clients = kind(one(profiles), "profile_client")
assert clients and clients[0]["name"] == "cuptiActivityRegisterCallbacks" and clients[0]["caller"] == str(client), clients

# It sees the dropped records that it sees alone, and so do we; a count that cannot be read is none.
said, profiles = story("look", "5", "start", "3", "drop", "stop", "2", "drop")
complete(one(profiles), 10, dropped=10)
assert "dropped 0/5" in said, said
said, profiles = story("look", "5", "drop", FAKE_CUPTI_REFUSES="cuptiActivityGetNumDroppedRecords=15")
assert window(one(profiles))[1]["dropped"] is None

# Somebody sets buffers behind everybody's back: launches without records, and no crash.
profile = one(story("look", "5", "behind", "20")[1])
begin, end = window(profile)
assert end["count"] - begin["count"] == 25 and len(records(profile)) < 25

# CUPTI refuses: the program goes on, and what was refused is told.
for call, error in (("cuptiActivityEnable", 35), ("cuptiActivityRegisterCallbacks", 39)):
    profile = one(story("look", "5", FAKE_CUPTI_REFUSES=f"{call}={error}")[1])
    lack, = kind(profile, "profile_lacks")
    assert (lack["name"], lack["error"], lack["text"]) == (call, error, f"CUPTI_WORDS_FOR_{error}"), lack
    assert kind(profile, "profile_window") == []
profile = one(story("look", "5", FAKE_CUPTI_VERSION="13")[1])
assert "older" in kind(profile, "profile_lacks")[0]["text"]

# The seat of callbacks is not ours: who takes it is noted.
profile = one(story("subscribe", "look", "5", "subscribe")[1])
assert [(entry["name"], entry["error"]) for entry in kind(profile, "profile_client")] == [("cuptiSubscribe", 0), ("cuptiSubscribe", 39)]

# Times of a counter are kept as they are; the reader turns them (tests/unit/diagnose/optimizer).
if not MACHINE:
    kernels = complete(one(story("look", "5", FAKE_CUPTI_TICKS="1")[1]), 5)
    assert all(k["begin"] < 1 << 60 for k in kernels), kernels

# A child of fork is not profiled, and leaves its parent's profile alone.
complete(one(story("look", "5", "child", "5")[1]), 10)

# Without the wish there is no file; a wish that is none is told.
for env, said in (({}, ""), ({"CUDIAG_PROFILE": "all", "CUDIAG_PRINT": "auto"}, "cudiag: CUDIAG_PROFILE is to be optimizer or launches: nothing is profiled\n")):
    both = bed.twin(program, driver, cupti, client, "look", "5", env={"FAKE_DRIVER_QUIET": 1, **env}, same=lambda text: text.replace(said, "") if said else text)
    assert both.under.stderr == said and not list(both.runs.glob("*/*")), (both.under, list(both.runs.glob("*/*")))
