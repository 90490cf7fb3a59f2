const stamp = { program: "", version: "", options: {} }
const tools: Record<string, any> = {}
// Tells the program `bizar-opencode` what opencode's tools do, and acts on its verdicts. Whatever goes
// wrong with the program, a tool call goes on. Nothing here opens a connection.
import type { Plugin } from "@opencode-ai/plugin"
import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, readFileSync, realpathSync } from "node:fs"
import { delimiter, isAbsolute, join, relative, sep } from "node:path"

type Json = Record<string, any>
type Opened = { params: Json; opened: (answer: Json) => void; log: (level: string, text: string) => void }
const PROTOCOL = 1
const MOST = 150_000 // characters of a text that travel whole: escaped, a line stays under 1 MiB
const LEVELS = ["debug", "info", "warn", "error"]
// How the system text of requests begins that are no step of an agent.
const TITLE = ["You are a title generator", "Summarize what was done in this conversation"]
const BUILT_IN = ["build", "plan", "general", "explore"] // agents that are there without being configured
const COMPACTION = "You are a context summarization agent"

/** The program: one process for all directories. It may be missing, slow, dead or mad; nobody waits longer than told. */
class Sidecar {
  directories = new Map<string, Opened>()
  private child?: ChildProcess
  private waiting = new Map<number, (answer?: Json) => void>()
  private id = 0
  private timeouts = 0 // in a row; three open the circuit, and then one is enough to open it again
  private pause = 1000 // ms, doubled with each failure in a row
  private resume = 0 // until then nothing is started and no answer waited for
  private told = false

  constructor(private program: string, private mode: string) {}

  open(directory: string, opened: Opened) {
    this.directories.set(directory, opened)
    if (this.child) this.announce(opened)
    else this.start()
  }

  close(directory: string) {
    this.tell("close", { directory })
    this.directories.delete(directory)
    if (this.directories.size) return
    this.child?.stdin?.end()
    this.child = undefined
  }

  tell = (method: string, params: Json) => this.send({ jsonrpc: "2.0", method, params })

  /** Sends at once, before anything is awaited: parallel calls are counted in their order. */
  ask(method: string, params: Json, patience: number) {
    return new Promise<Json | undefined>((done) => {
      const id = this.request(method, params, (answer) => (clearTimeout(timer), done(answer)))
      if (!id || Date.now() < this.resume) return done(undefined)
      const timer = setTimeout(async () => {
        await new Promise(setImmediate) // the event loop may just have stood still
        if (this.waiting.delete(id) && ++this.timeouts >= 3) this.fail("it does not answer in time")
        done(undefined)
      }, patience)
    })
  }

  /** Asks without a time limit, until the host gives up. */
  wait(method: string, params: Json, abort: AbortSignal) {
    return new Promise<Json | undefined>((done) => {
      const id = this.request(method, params, done)
      if (!id) done(undefined)
      abort.addEventListener("abort", () => (this.waiting.delete(id) && this.tell("cancel", { id }), done(undefined)))
    })
  }

  private request(method: string, params: Json, done: (answer?: Json) => void) {
    const id = ++this.id // sending may start the program, which makes requests of its own
    if (!this.send({ jsonrpc: "2.0", id, method, params })) return 0
    this.waiting.set(id, done)
    return id
  }

  private announce = ({ params, opened }: Opened) => this.request("open", params, (answer) => answer && opened(answer))

  private send(message: Json) {
    if (!this.child && this.directories.size && Date.now() >= this.resume) this.start()
    const pipe = this.child?.stdin
    if (!pipe?.writable) return false
    let line = JSON.stringify(message)
    if (line.length > 2 * MOST && this.mode === "guard")
      line = JSON.stringify({ ...message, params: { ...message.params, args: undefined, cut: true } })
    pipe.write(line + "\n")
    if (pipe.writableLength > 64 * MOST) this.child!.kill("SIGKILL") // it has not read for long
    return true
  }

  private start() {
    // Detached: what a terminal sends to all must not keep background agents from being ended in order.
    const detached = this.mode === "background"
    const child = spawn(this.program, [this.mode], { stdio: ["pipe", "pipe", "ignore"], windowsHide: true, detached })
    this.child = child
    let text = ""
    const gone = (why: string) => {
      if (this.child !== child) return
      this.child = undefined
      if (this.directories.size) this.fail(why)
      for (const done of this.waiting.values()) done()
      this.waiting.clear()
    }
    child.on("error", (error) => gone(error.message)).on("close", (code, signal) => gone(`it ended with ${signal ?? code}`))
    child.stdin!.on("error", () => {})
    child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (text + chunk).split("\n")
      text = lines.pop()!
      if (text.length > (detached ? 100 : 8) * MOST || !lines.every((line) => this.receive(line))) child.kill("SIGKILL")
    })
    this.request("hello", { protocol: PROTOCOL, version: stamp.version }, (answer) => {
      if (!answer || answer.protocol === PROTOCOL) return
      this.fail(`it speaks protocol ${answer.protocol}, this plugin ${PROTOCOL}: run "bizar-opencode install"`)
      this.resume = Infinity
      child.stdin!.end()
    })
    for (const opened of this.directories.values()) this.announce(opened)
  }

  private receive(line: string) {
    try {
      const { id, result } = JSON.parse(line)
      const done = this.waiting.get(id)
      if (done && this.resume <= Date.now()) [this.timeouts, this.pause] = [0, 1000]
      this.waiting.delete(id)
      done?.(result)
      return true
    } catch {
      return false
    }
  }

  private fail(why: string) {
    this.resume = Math.max(this.resume, Date.now() + this.pause)
    this.pause = Math.min(this.pause * 2, 60_000)
    const lack = this.mode === "guard" ? "tool calls go on unguarded" : "background agents have ended"
    if (!this.told) for (const { log } of this.directories.values()) log("error", `${lack}: ${this.program}: ${why}`)
    this.told = true
  }
}

/** A global install names the program; a project's copy takes it from `PATH`, but never from inside the project. */
function find(...projects: string[]) {
  const name = process.platform === "win32" ? "bizar-opencode.exe" : "bizar-opencode"
  const outside = (path: string) => projects.every((project) => project === sep || /^\.\.([/\\]|$)/.test(relative(project, path)))
  const folders = (process.env.PATH ?? "").split(delimiter).filter(isAbsolute)
  return (stamp.program ? [stamp.program] : folders.map((folder) => join(folder, name))).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return stamp.program || outside(realpathSync(path))
    } catch {}
  })
}

/** A long text as its ends, its length and a hash of all of it. */
function cut(text: string) {
  if (text.length <= MOST) return text
  let [a, b] = [1, 2]
  for (let i = 0; i < text.length; i++) [a, b] = [Math.imul(a ^ text.charCodeAt(i), 0x9e3779b1), Math.imul(b, 31) + a]
  return { head: text.slice(0, MOST / 2), tail: text.slice(-MOST / 4), length: text.length, hash: `${a} ${b | 0}` }
}

function outcome({ output, content, attachments, metadata }: Json) {
  const text = typeof output === "string" ? output : JSON.stringify(content ?? output ?? null)
  const files = attachments?.length ? JSON.stringify(attachments.map((file: Json) => file.url)) : ""
  return { output: cut(text + files), metadata: { exit: metadata?.exit } }
}

/** opencode's own question about repeated calls is switched off where ours is on. A `deny` stays. */
function allowDoomLoop(owner: Json) {
  const { doom_loop, ...rules }: Json = typeof owner.permission === "string" ? { "*": owner.permission } : (owner.permission ?? {})
  if ((doom_loop ?? rules["*"]) !== "deny") owner.permission = { ...rules, doom_loop: "allow" } // the last match wins
}

/** The options that decide what is registered. The program reads all of them, and more carefully. */
function settings(options: Json): Json {
  let file: Json = {}
  try {
    const home = process.env.HOME ?? process.env.USERPROFILE ?? ""
    file = JSON.parse(readFileSync(join(home, ".config/bizarharness/options.json"), "utf8"))
  } catch {}
  return { ...stamp.options, ...file, ...file?.hosts?.opencode, ...options }
}

export const Bizar: Plugin = async ({ client, directory, worktree }, options = {}) => {
  const { BIZAR_LOG_LEVEL, BIZAR_DISABLE, BIZAR_DISABLE_LOOP, BIZAR_BACKGROUND_CHILD } = process.env
  const isChild = BIZAR_BACKGROUND_CHILD === "1" // a server that runs background agents
  if (isChild) delete process.env.OPENCODE_SERVER_PASSWORD // shells must not inherit it
  const least = LEVELS.indexOf(LEVELS.includes(BIZAR_LOG_LEVEL!) ? BIZAR_LOG_LEVEL! : "info")
  const later = (work: () => unknown) => void Promise.resolve().then(work).catch(() => {})
  const log = (level: any, message: string) => {
    if (LEVELS.indexOf(level) >= least) later(() => client.app.log({ body: { service: "bizar", level, message: `bizar: ${message}` } }))
  }
  if (BIZAR_DISABLE === "1") return log("debug", "disabled by BIZAR_DISABLE"), {}

  const shared: Json = ((globalThis as any)[Symbol.for("bizar")] ??= { directories: new Set() })
  if (shared.directories.has(directory)) return log("debug", "loaded already: this copy does nothing"), {}
  shared.directories.add(directory)
  const program = find(directory, worktree)
  if (!program) log("error", `tool calls go on unguarded: ${stamp.program || "bizar-opencode"} is not there: run "bizar-opencode install"`)
  if (!program) return { dispose: async () => shared.directories.delete(directory) }

  const guard: Sidecar = (shared.guard ??= new Sidecar(program, "guard"))
  let patience = 250
  let notes: string[] | undefined
  const opened = (answer: Json) => {
    patience = answer.verdictTimeoutMs
    if (!notes) for (const note of (notes = answer.notes as string[])) log("warn", note)
  }
  guard.open(directory, { params: { directory, worktree, defaults: stamp.options, options }, opened, log })
  const ask = (method: string, params: Json) => guard.ask(method, { directory, ...params }, patience)
  const tell = (method: string, params: Json) => guard.tell(method, { directory, ...params })

  type Call = { message?: string; open: boolean }
  const sessions = new Map<string, { calls: Map<string, Call>; steps: number; compacting: boolean; due: boolean }>()
  const of = (id: string) => sessions.get(id) ?? sessions.set(id, { calls: new Map(), steps: 0, compacting: false, due: true }).get(id)!
  /** Whether this is the end of an open call; a provider may use an id again in a later message. */
  const ends = (session: string, call: string, message?: string) => {
    const { calls } = of(session)
    const known = calls.get(call)
    return !!known?.open && (!message || !known.message || known.message === message) && calls.delete(call)
  }
  let swept = false
  const sweep = async () => {
    const list = await client.session.list({ query: { scope: "project", limit: 1_000_000 } as any }).catch(() => undefined)
    tell("sweep", { ids: list?.data?.map(({ id }) => id) ?? null })
  }

  const background = async () => {
    const version = (await (client as any)._client.get({ url: "/global/health" }).catch(() => undefined))?.data?.version
    const sidecar: Sidecar = (shared.background ??= new Sidecar(program, "background"))
    const params = { directory, defaults: stamp.options, options, program: process.execPath, version }
    if (!sidecar.directories.has(directory)) sidecar.open(directory, { params, opened: () => {}, log })
    return sidecar
  }
  const use = (name: string) => async (args: Json, { agent, sessionID, abort }: Json) => {
    const params = { directory, agent, session: sessionID, args }
    const answer = await (await background()).wait(name.split("_")[1], params, abort)
    if (!answer?.text) throw new Error(answer?.refused ?? "background agents are not available now: call again in some seconds")
    return answer.text
  }
  const tool: Json = {}

  return {
    tool,
    "tool.definition": async ({ toolID }: Json, output: Json) => {
      if (tool[toolID] && output.jsonSchema) output.jsonSchema.required = tools[toolID].required
    },
    "shell.env": async (_: Json, { env }: Json) => {
      if (isChild) env.OPENCODE_SERVER_PASSWORD = ""
    },
    config: async (config: Json) => {
      const set = settings(options)
      const exists = (name: string) => (config.agent?.[name] ? !config.agent[name].disable : BUILT_IN.includes(name))
      if (!isChild && [set.backgroundAgents ?? "odin"].flat().some(exists)) {
        for (const [name, { description, args }] of Object.entries(tools)) tool[name] = { description, args, execute: use(name) }
        if (set.backgroundEager === true) later(background)
      }
      if (BIZAR_DISABLE_LOOP === "1" || set.loopObserveOnly === true || set.opencodeDoomLoop === "leave") return
      for (const owner of [config, ...Object.values<Json>(config.agent ?? {}).filter((agent) => agent?.permission)]) allowDoomLoop(owner)
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (parts.some((part: Json) => !part.synthetic)) tell("user", { session: sessionID, agent: message.agent })
      if (!swept) later(sweep)
      swept = true
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const session = of(sessionID)
      const { calls, steps } = session
      const message = calls.get(callID)?.message
      calls.set(callID, { message, open: true })
      const answer = await ask("before", { session: sessionID, call: callID, message: message ?? `step ${steps}`, tool, args })
      session.due ||= !["allow", "notice"].includes(answer?.verdict)
      if (answer?.log) log(answer.halt ? "error" : "warn", answer.log)
      if (answer?.halt) later(() => client.session.abort({ path: { id: sessionID } }))
      if (answer?.halt) later(() => client.tui.showToast({ body: { title: "Bizar", message: answer.text, variant: "error" } }))
      if (answer?.text) throw new Error(answer.text)
    },
    "tool.execute.after": async ({ sessionID, callID }, result) => {
      if (ends(sessionID, callID)) tell("after", { session: sessionID, call: callID, ...outcome(result) })
    },
    "chat.params": async ({ sessionID, agent }: Json) => {
      if (!["title", "summary", "compaction"].includes(agent?.name ?? agent)) of(sessionID).steps++
    },
    "experimental.session.compacting": async ({ sessionID }) => void (of(sessionID).compacting = true),
    "experimental.chat.system.transform": async ({ sessionID }: Json, { system }) => {
      if (!sessionID || TITLE.some((start) => system[0]?.startsWith(start))) return
      const session = of(sessionID)
      const compacting = session.compacting || system[0]?.startsWith(COMPACTION)
      session.compacting = false
      if (compacting || !session.due) return // below the first level there is nothing to ask for
      const answer = await ask("request", { session: sessionID })
      if (answer?.text) system.push(answer.text)
      session.due = !answer || !!answer.text
    },
    event: async ({ event: { type, properties } }: Json) => {
      const gone = type === "session.idle" ? properties.sessionID : type === "session.deleted" ? properties.info.id : undefined
      if (gone) tell(type.slice(8), { session: gone })
      if (gone) sessions.delete(gone)
      if (type !== "message.part.updated" || properties.part.type !== "tool") return
      const { sessionID: session, callID: call, messageID: message, state } = properties.part
      if (state.status === "pending") of(session).calls.set(call, { message, open: false })
      if (state.status === "completed" && ends(session, call, message)) tell("after", { session, call, ...outcome(state) })
      if (state.status === "error" && ends(session, call, message)) tell("failed", { session, call, error: cut(String(state.error)) })
    },
    dispose: async () => {
      shared.directories.delete(directory)
      guard.close(directory)
      shared.background?.close(directory)
    },
  }
}
