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
 * The calls differ in few of their keys and arguments: these are at the positions in ARGV, and stand there for each call after
 * all those of the first call. An error of one call must not reach the others, which may have been carried out.
 */
export function batchScript(script: string): string {
  return `
local function call(KEYS, ARGV)
${script}
end

local arguments, differing = tonumber(ARGV[1]), tonumber(ARGV[2])
local keys, args, positions = KEYS, {}, {}
for n = 1, differing do positions[n] = tonumber(ARGV[2 + n]) end
for n = 1, arguments do args[n] = ARGV[2 + differing + n] end

local results = {}
for at = 2 + differing + arguments, #ARGV - 1, differing do
  for n, position in ipairs(positions) do
    if position <= #keys then keys[position] = ARGV[at + n] else args[position - #keys] = ARGV[at + n] end
  end
  local done, result = pcall(call, keys, args)
  local fault = type(result) == 'table' and result.err
  if not done then fault = fault or tostring(result) end
  table.insert(results, fault and { 0, fault } or { 1, result })
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

export class ScriptBatch {
  readonly #runOne: RunScript;
  readonly #runMany: RunScript;
  readonly #keys: number;
  #calls: Call[] = [];

  /**
   * @param keys how many of a call's arguments are keys
   * @param runMany runs {@link batchScript}; its first argument is that number
   */
  constructor({ runOne, runMany, keys }: { runOne: RunScript; runMany: RunScript; keys: number }) {
    this.#runOne = runOne;
    this.#runMany = runMany;
    this.#keys = keys;
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
    const args = this.#together(calls);
    if (!args) {
      for (const { args, resolve, reject } of calls) this.#runOne(args).then(resolve, reject);
      return;
    }
    try {
      const results = batchResults.parse(await this.#runMany(args));
      for (const [index, { resolve, reject }] of calls.entries()) {
        const [done, result = null] = results[index] ?? [0, 'the script gave no result for this call'];
        if (done === 1) resolve(result);
        else reject(new ReplyError(String(result)));
      }
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }

  /** The arguments of {@link batchScript}; undefined for calls that cannot go together, such as one alone. */
  #together(calls: readonly Call[]): ScriptArgument[] | undefined {
    const first = calls[0]?.args ?? [];
    const positions = [...first.keys()].filter((at) => calls.some(({ args }) => args[at] !== first[at]));
    if (positions.length === 0 || calls.some(({ args }) => args.length !== first.length)) return undefined;
    const keys = this.#keys;
    return [
      keys,
      ...first.slice(0, keys),
      first.length - keys,
      positions.length,
      ...positions.map((at) => at + 1),
      ...first.slice(keys),
      ...calls.flatMap(({ args }) => positions.map((at) => args[at])),
    ];
  }
}

const batchResults = z.array(z.tuple([z.number()], z.unknown()));
