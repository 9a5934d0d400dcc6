/**
 * Many calls of one of BullMQ's scripts in a single command. Acknowledgements come in hundreds, when an insert ends, and most of
 * what one costs is its way: a command that both sides write and read, and a script that starts. The script itself stays
 * BullMQ's own, of whatever version: its text becomes a function, which is called once for each job, one after the other, with
 * the keys and arguments that BullMQ gave. So nothing here knows what the script does, or what BullMQ keeps where.
 */
import { ReplyError } from 'ioredis';
import { z } from 'zod';

/** Redis answers nobody during a script; so many acknowledgements take some milliseconds. */
const MOST_CALLS = 64;

/**
 * The calls differ in few of their keys and arguments, or in none: these are at the positions in ARGV, and stand there for each
 * call after all those of the first call. An error of one call must not reach the others, which may have been carried out.
 * @param isLast Lua, whether calls after the one that gave this `result` would give the same
 */
export function batchScript(script: string, isLast = 'false'): string {
  return `
local function call(KEYS, ARGV)
${script}
end

local calls, arguments, differing = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local keys, args, positions = KEYS, {}, {}
for n = 1, differing do positions[n] = tonumber(ARGV[3 + n]) end
for n = 1, arguments do args[n] = ARGV[3 + differing + n] end

local results = {}
local at = 3 + differing + arguments
for n = 1, calls do
  for n, position in ipairs(positions) do
    if position <= #keys then keys[position] = ARGV[at + n] else args[position - #keys] = ARGV[at + n] end
  end
  at = at + differing
  local done, result = pcall(call, keys, args)
  local fault = type(result) == 'table' and result.err
  if not done then fault = fault or tostring(result) end
  results[n] = fault and { 0, fault } or { 1, result }
  if ${isLast} then break end
end
return results`;
}

/** A key or an argument, as BullMQ gives it to ioredis. */
export type ScriptArgument = string | number | Buffer | null | undefined;
/** Runs a script that was defined on a connection. */
export type RunScript = (args: readonly ScriptArgument[]) => Promise<unknown>;

interface Call {
  readonly args: readonly ScriptArgument[];
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface ScriptBatchOptions {
  readonly runOne: RunScript;
  /** Runs {@link batchScript}; its first argument is how many of its arguments are keys. */
  readonly runMany: RunScript;
  /** How many of a call's arguments are keys. */
  readonly keys: number;
  /** Whether calls may be left out after one that had nothing to do: they give null. */
  readonly endsEarly: boolean;
}

export class ScriptBatch {
  readonly #options: ScriptBatchOptions;
  #calls: Call[] = [];

  constructor(options: ScriptBatchOptions) {
    this.#options = options;
  }

  /** As if the script were run for itself. What is called within one turn of the event loop goes together. */
  run(args: readonly ScriptArgument[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#calls.push({ args, resolve, reject });
      if (this.#calls.length === 1) setImmediate(() => this.#send());
    });
  }

  #send(): void {
    const calls = this.#calls;
    this.#calls = [];
    for (let from = 0; from < calls.length; from += MOST_CALLS)
      void this.#sendTogether(calls.slice(from, from + MOST_CALLS));
  }

  async #sendTogether(calls: readonly Call[]): Promise<void> {
    const args = together(calls, this.#options.keys);
    if (!args) {
      for (const { args, resolve, reject } of calls) this.#options.runOne(args).then(resolve, reject);
      return;
    }
    try {
      const results = batchResults.parse(await this.#options.runMany(args));
      const without = this.#options.endsEarly ? [1] : [0, 'the script gave no result for this call'];
      for (const [index, { resolve, reject }] of calls.entries()) {
        const [done, result = null] = results[index] ?? without;
        if (done === 1) resolve(result);
        else reject(new ReplyError(String(result)));
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }
}

/** The arguments of {@link batchScript}; undefined for calls that cannot go together, such as one alone. */
function together(calls: readonly Call[], keys: number): ScriptArgument[] | undefined {
  const [first, ...others] = calls.map(({ args }) => args);
  if (!first || others.length === 0 || others.some((args) => args.length !== first.length)) return undefined;
  const positions = [...first.keys()].filter((at) => others.some((args) => !isSame(args[at], first[at])));
  return [
    keys,
    ...first.slice(0, keys),
    calls.length,
    first.length - keys,
    positions.length,
    ...positions.map((at) => at + 1),
    ...first.slice(keys),
    ...calls.flatMap(({ args }) => positions.map((at) => args[at])),
  ];
}

function isSame(one: ScriptArgument, other: ScriptArgument): boolean {
  return one === other || (one instanceof Buffer && other instanceof Buffer && one.equals(other));
}

const batchResults = z.array(z.tuple([z.number()], z.unknown()));
