"""The same hook in Python: identical calls in a row, counted over processes."""
import fcntl, hashlib, json, os, sys, time

event = json.load(sys.stdin)
cache = os.path.join(os.environ["HOME"], ".cache", "bizar-python")
os.makedirs(os.path.join(cache, "logs"), exist_ok=True)
path = os.path.join(cache, event["session_id"] + ".json")
with open(path + ".lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with open(path) as file:
            state = json.load(file)
    except FileNotFoundError:
        state = {"ring": [], "open": {}, "calls": []}
    call = {"args": event["tool_input"], "tool": event["tool_name"]}
    text = json.dumps(call, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    fingerprint = hashlib.sha256(text.encode()).hexdigest()
    answer = None
    if event["hook_event_name"] == "PreToolUse":
        state["open"][event["tool_use_id"]] = fingerprint
        stale = 0
        for old in reversed(state["ring"]):
            if old[0] != fingerprint:
                break
            stale += 1
        if stale >= 11:
            answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
    else:
        state["open"].pop(event["tool_use_id"], None)
        digest = hashlib.sha256(json.dumps(event["tool_response"], sort_keys=True).encode()).hexdigest()
        state["ring"] = (state["ring"] + [[fingerprint, digest]])[-48:]
        state["calls"] = (state["calls"] + [{"tool": event["tool_name"], "at": time.time()}])[-50:]
        with open(os.path.join(cache, "logs", event["session_id"] + ".log"), "a") as log:
            log.write(f"{time.time()} tool={event['tool_name']} fingerprint={fingerprint[:12]} outcome=ok\n")
    with open(path + ".new", "w") as file:
        json.dump(state, file)
    os.replace(path + ".new", path)
if answer:
    print(json.dumps(answer))
