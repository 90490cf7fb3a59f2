const stamp = { program: "", version: "", options: {} }
const tools: Record<string, any> = {}
// Tells the program `bizar-opencode` what opencode's agents do, and acts on its verdicts. Whatever goes wrong with the
// program, a tool call goes on. Nothing here opens a connection.
import type { Plugin } from "@opencode-ai/plugin"
import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, readFileSync, realpathSync, statSync } from "node:fs"
import { delimiter, isAbsolute, join, relative, sep } from "node:path"

type Json = Record<string, any>
const PROTOCOL = 2
const PATIENCE = 250 // ms, until the program has said what the options say
const MOST = 300_000 // characters of JSON that travel whole: a line stays under 1 MiB
const UNGUARDED = "tool calls go on unguarded"
const BUILT_IN = ["build", "plan", "general", "explore"] // agents that are there without being configured

/** The program in one of its modes: one process for all directories. It may be missing, slow, dead or mad. */
class Sidecar {
  directories = new Map<string, Json>()
  private child?: ChildProcess
  private waiting = new Map<number, (answer?: Json) => void>()
  private id = 0
  private failures = 0 // in a row
  private resume = 0 // until then nothing is started and no verdict waited for
  private told = false

  constructor(private program: string, private mode: string, private lack: string) {}

  open(directory: Json) {
    this.directories.set(directory.params.directory, directory)
    if (this.child) this.announce(directory)
    else this.start()
  }

  close(directory: string) {
    if (this.directories.delete(directory)) this.send("close", { directory })
    if (this.directories.size) return
    this.child?.stdin?.end()
    this.child = undefined
  }

  /** Asks before anything is awaited: parallel calls are counted in their order. A patience of 0 has no end. */
  async ask(method: string, params: Json, abort?: AbortSignal) {
    const patience = this.directories.get(params.directory)?.verdictTimeoutMs ?? PATIENCE
    if (patience && Date.now() < this.resume) return void this.send(method, params)
    return new Promise<Json | undefined>((done) => {
      const id = this.send(method, params, done)
      const expired = async () => {
        await new Promise(setImmediate) // the event loop may just have stood still
        if (this.waiting.delete(id)) this.fail("it does not answer in time")
        done(undefined)
      }
      if (!id) done(undefined)
      else if (patience) setTimeout(expired, patience)
      abort?.addEventListener("abort", () => (this.waiting.delete(id) && this.send("cancel", { id }), done(undefined)))
    })
  }

  /** Gives the id of a request, and 0 if nothing was sent or no answer is wanted. */
  send(method: string, params: Json, done?: (answer?: Json) => void) {
    if (!this.child && this.directories.size && Date.now() >= this.resume) this.start()
    const pipe = this.child?.stdin
    if (!pipe?.writable) return 0
    const id = done && ++this.id
    if (id) this.waiting.set(id, done)
    pipe.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n")
    if (pipe.writableLength > 32 * MOST) this.child!.kill("SIGKILL") // it has not read for long
    return id ?? 0
  }

  private announce = (directory: Json) => this.send("open", directory.params, (answer) => Object.assign(directory, answer))

  private start() {
    // Detached: what a terminal sends to all must not keep background agents from being ended in order.
    const detached = this.mode === "background"
    const child = spawn(this.program, [this.mode], { stdio: ["pipe", "pipe", "ignore"], windowsHide: true, detached })
    this.child = child
    const gone = (why: string) => {
      if (this.child && this.child !== child) return // another one runs by now
      if (this.child) this.fail(why, 3)
      this.child = undefined
      this.waiting.forEach((done) => done())
      this.waiting.clear()
    }
    child.on("error", (error) => gone(error.message)).on("close", (code, signal) => gone(`it ended with ${signal ?? code}`))
    child.stdin?.on("error", () => {})
    let text = ""
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (text + chunk).split("\n")
      text = lines.pop()!
      try {
        for (const { id, result } of lines.map((line) => JSON.parse(line))) {
          this.waiting.get(id)?.(result)
          if (this.waiting.delete(id)) this.failures = 0
        }
      } catch {
        child.kill("SIGKILL")
      }
      if (text.length > (detached ? 50 : 4) * MOST) child.kill("SIGKILL")
    })
    this.send("hello", { protocol: PROTOCOL, version: stamp.version }, (answer) => {
      if (!answer || answer.protocol === PROTOCOL) return
      this.fail(`it speaks protocol ${answer.protocol}, this plugin ${PROTOCOL}: run "bizar-opencode install"`, 3)
      this.resume = Infinity
      child.stdin?.end()
    })
    this.directories.forEach(this.announce)
  }

  /** After three failures in a row nothing is waited for during one second, then two, and so on; its end weighs three. */
  private fail(why: string, weight = 1) {
    this.failures = Math.max(this.failures + 1, weight)
    if (this.failures < 3) return
    this.resume = Math.max(this.resume, Date.now() + Math.min(1000 * 2 ** (this.failures - 3), 60_000))
    const text = `${this.lack}: ${this.program}: ${why}; "bizar-opencode doctor" may know more`
    if (!this.told) this.directories.forEach(({ log }) => log("error", text))
    this.told = true
  }
}

/** A global install names the program; a project's copy takes it from `PATH`, but never from inside the project. */
function find(...projects: string[]) {
  const name = process.platform === "win32" ? "bizar-opencode.exe" : "bizar-opencode"
  const isInside = (path: string, project: string) => project !== sep && !/^\.\.([/\\]|$)/.test(relative(project, path))
  const folders = (process.env.PATH ?? "").split(delimiter).filter(isAbsolute)
  return (stamp.program ? [stamp.program] : folders.map((folder) => join(folder, name))).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return stamp.program || !projects.some((project) => isInside(realpathSync(path), project))
    } catch {}
  })
}

/** A long value as the ends of its JSON, its length and a hash of all of it. */
function cut(value: any) {
  const text = JSON.stringify(value) ?? ""
  if (text.length <= MOST) return value
  let [a, b] = [1, 2]
  for (let i = 0; i < text.length; i++) [a, b] = [Math.imul(a ^ text.charCodeAt(i), 0x9e3779b1), Math.imul(b, 31) + a]
  return { head: text.slice(0, MOST / 2), tail: text.slice(-MOST / 4), length: text.length, hash: `${a} ${b | 0}` }
}

/** The options that decide what is registered at start. The program reads all of them, and more carefully. */
function settings(options: Json): Json {
  let file: Json = {}
  try {
    const home = [process.env.HOME, process.env.USERPROFILE].find((home) => home && isAbsolute(home))
    const path = join(home!, ".config/bizarharness/options.json")
    if (statSync(path).isFile()) file = JSON.parse(readFileSync(path, "utf8"))
  } catch {}
  return { ...stamp.options, ...file, ...file?.hosts?.opencode, ...options }
}

export const Bizar: Plugin = async ({ client, directory, worktree }, options = {}) => {
  const { BIZAR_LOG_LEVEL, BIZAR_DISABLE, BIZAR_DISABLE_LOOP, BIZAR_BACKGROUND_CHILD } = process.env
  const isChild = BIZAR_BACKGROUND_CHILD === "1" // a server that runs background agents
  if (isChild) delete process.env.OPENCODE_SERVER_PASSWORD // shells must not inherit it
  const later = (work: () => unknown) => Promise.resolve().then(work).catch(() => {})
  const log = (level: any, text: string) =>
    later(() => client.app.log({ body: { service: "bizar", level, message: `bizar: ${text}` } }))
  const nothing = (why: string) => (BIZAR_LOG_LEVEL === "debug" && log("debug", why), {})
  if (BIZAR_DISABLE === "1") return nothing("disabled by BIZAR_DISABLE")

  const shared: Json = ((globalThis as any)[Symbol.for("bizar")] ??= {})
  if (shared.guard?.directories.has(directory)) return nothing("loaded already: this copy does nothing")
  const program = find(directory, worktree)
  if (!program) return log("error", `${UNGUARDED}: ${stamp.program || "bizar-opencode"} is not there: install it`), {}

  const params = { directory, worktree, defaults: stamp.options, options }
  const guard: Sidecar = (shared.guard ??= new Sidecar(program, "guard", UNGUARDED))
  guard.open({ params, log })
  const ask = (method: string, session: string, params: Json) => guard.ask(method, { directory, session, ...params })
  const tell = (method: string, session: string, params: Json = {}) => void guard.send(method, { directory, session, ...params })
  const quiet = new Set<string>() // sessions whose next request needs no text
  let sweep: unknown // once

  const tool: Json = {}
  const background = async () => {
    const version = (await (client as any)._client.get({ url: "/global/health" }).catch(() => undefined))?.data?.version
    const own = { ...params, program: process.execPath, version }
    const sidecar: Sidecar = (shared.background ??= new Sidecar(program, "background", "background agents have ended"))
    if (!sidecar.directories.has(directory)) sidecar.open({ params: own, log, verdictTimeoutMs: 0 })
    return sidecar
  }
  const use = (name: string) => async (args: Json, { agent, sessionID, abort }: Json) => {
    const answer = await (await background()).ask(name.split("_")[1], { directory, agent, session: sessionID, args }, abort)
    if (!answer?.text) throw new Error(answer?.refused ?? "background agents are not available now: call again in some seconds")
    return answer.text
  }

  return {
    tool,
    config: async (config: Json) => {
      const set = settings(options)
      const exists = (name: string) => (config.agent?.[name] ? !config.agent[name].disable : BUILT_IN.includes(name))
      if (!isChild && [set.backgroundAgents ?? "odin"].flat().some(exists)) {
        for (const [name, { description, args }] of Object.entries(tools)) tool[name] = { description, args, execute: use(name) }
        if (set.backgroundEager === true) later(background)
      }
      // opencode's own question about repeated calls is switched off where ours is on. A `deny` stays.
      if (BIZAR_DISABLE_LOOP === "1" || set.loopObserveOnly === true || set.opencodeDoomLoop === "leave") return
      for (const owner of [config, ...Object.values<Json>(config.agent ?? {}).filter((agent) => agent?.permission)]) {
        const { doom_loop, ...rules } = owner.permission ?? {}
        if ((doom_loop ?? rules["*"]) !== "deny") owner.permission = { ...rules, doom_loop: "allow" } // the last match wins
      }
    },
    "tool.definition": async ({ toolID }: Json, output: Json) => {
      if (tool[toolID] && output.jsonSchema) output.jsonSchema.required = tools[toolID].required
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (parts.some((part: Json) => !part.synthetic)) tell("user", sessionID, { agent: message.agent })
      sweep ??= later(async () => {
        const list = await client.session.list({ query: { scope: "project", limit: 1_000_000 } as any }).catch(() => undefined)
        guard.send("sweep", { directory, ids: list?.data?.map(({ id }) => id) ?? null })
      })
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const short = cut(args)
      const answer = await ask("before", sessionID, { call: callID, tool, args: short, cut: short !== args })
      if (answer?.due !== false) quiet.delete(sessionID)
      for (const [level, text] of answer?.log ?? []) log(level, text)
      if (answer?.halt) later(() => client.session.abort({ path: { id: sessionID } }))
      if (answer?.halt) later(() => client.tui.showToast({ body: { title: "Bizar", message: answer.text, variant: "error" } }))
      if (answer?.text) throw new Error(answer.text)
    },
    "tool.execute.after": async ({ sessionID, callID }, { output, content, attachments, metadata }: Json) => {
      const files = attachments?.map((file: Json) => file.url)
      const result = files?.length ? { output, content, files } : (output ?? content)
      tell("after", sessionID, { call: callID, output: cut(result), metadata: { exit: metadata?.exit } })
    },
    "experimental.session.compacting": async ({ sessionID }) => tell("compacting", sessionID),
    "experimental.chat.system.transform": async ({ sessionID }: Json, { system }) => {
      if (!sessionID) return
      const begin = { system: system[0]?.slice(0, 100) } // it shows whether this is a step of an agent
      if (quiet.has(sessionID)) return tell("request", sessionID, begin)
      const answer = await ask("request", sessionID, begin)
      if (answer?.text) system.push(answer.text)
      if (answer?.due === false) quiet.add(sessionID)
    },
    event: async ({ event: { type, properties } }: Json) => {
      if (type === "session.idle" || type === "session.deleted") tell(type.slice(8), properties.sessionID)
      if (type === "session.deleted") quiet.delete(properties.sessionID)
      if (type !== "message.part.updated" || properties.part.type !== "tool") return
      const { sessionID, callID: call, messageID: message, state } = properties.part
      if (state.status === "pending") tell("pending", sessionID, { call, message })
      if (state.status === "error") tell("failed", sessionID, { call, message, error: cut(state.error) })
    },
    dispose: async () => [guard, shared.background].forEach((sidecar) => sidecar?.close(directory)),
  }
}
