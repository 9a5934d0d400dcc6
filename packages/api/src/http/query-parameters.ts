/**
 * Parses a query string strictly. Unknown, empty and repeated parameters are errors. Otherwise, a request with a mistyped filter would select
 * everything. The parser collects all errors, so that the caller can fix them together. Source: docs/api-contract.md, "Groups and filters".
 */
import { quoted } from '@meterline/catalog/plain';
import type { z } from 'zod';
import { type ApiError, invalidParameters, type ParameterProblem } from './errors.js';

export interface ParameterRules {
  readonly names: readonly string[];
  readonly mayBeEmpty?: readonly string[];
  readonly mayRepeat?: readonly string[];
  readonly ignored?: readonly string[];
  /** Maps parameters that callers may know from related APIs to advice on what to use instead. */
  readonly unsupported?: Readonly<Record<string, string>>;
}

const OPTIONAL = 'give it a value or omit it';

export class QueryParameters {
  readonly #values = new Map<string, readonly string[]>();
  readonly #problems: ParameterProblem[] = [];
  readonly #mayBeEmpty: readonly string[];

  /** @param rawQuery percent-encoded UTF-8 without the question mark, already validated by `checkRequestTarget` */
  constructor(rawQuery: string, rules: ParameterRules) {
    this.#mayBeEmpty = rules.mayBeEmpty ?? [];
    const sent = new URLSearchParams(rawQuery);
    // Only the error about the first unknown parameter lists the valid ones. Otherwise, a short request could cause a long response.
    const firstUnknown = [...sent.keys()].find((name) => isUnknown(name, rules));
    // `getAll` is not used, because it would scan thousands of parameters for each name.
    const byName = new Map<string, string[]>();
    for (const [name, value] of sent) {
      const values = byName.get(name);
      if (values) values.push(value);
      else byName.set(name, [value]);
    }
    for (const [name, values] of byName) {
      if (rules.ignored?.includes(name)) continue;
      const problem = admissionProblem(name, values, rules, name === firstUnknown);
      if (problem === undefined) this.#values.set(name, values);
      else this.problem(name, problem);
    }
  }

  /** Returns the parsed value, or undefined if the parameter is missing or invalid. */
  optional<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema> | undefined {
    return this.#read(name, schema, OPTIONAL)?.[0];
  }

  list<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema>[] | undefined {
    return this.#read(name, schema, OPTIONAL);
  }

  /** Parses a list. The values may be separated by commas (`a=1,2`), sent as repeated parameters (`a=1&a=2`), or both. */
  joined<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema> | undefined {
    const texts = this.#values.get(name);
    if (texts !== undefined && !texts.includes('')) this.#values.set(name, [texts.join(',')]);
    return this.optional(name, schema);
  }

  required<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema> | undefined {
    const hasProblem = this.#problems.some(({ parameter }) => parameter === name);
    if (!this.#values.has(name) && !hasProblem) this.problem(name, `${name} is missing; it is required.`);
    return this.#read(name, schema, 'it is required, give it a value')?.[0];
  }

  #read<Schema extends z.ZodType>(name: string, schema: Schema, ifEmpty: string): z.output<Schema>[] | undefined {
    const texts = this.#values.get(name);
    if (texts === undefined) return undefined;
    if (texts.includes('') && !this.#mayBeEmpty.includes(name)) {
      this.problem(name, `${name} is empty; ${ifEmpty}.`);
      return undefined;
    }
    const values: z.output<Schema>[] = [];
    for (const text of texts) {
      const value = schema.safeParse(text);
      if (value.success) values.push(value.data);
      else
        for (const { message } of value.error.issues) this.problem(name, `${name} ${message} (got ${quoted(text)}).`);
    }
    return values.length === texts.length ? values : undefined;
  }

  /** @param message a sentence that names the parameter, the problem and the allowed values */
  problem(parameter: string, message: string): void {
    this.#problems.push({ parameter, message });
  }

  get areValid(): boolean {
    return this.#problems.length === 0;
  }

  error(): ApiError {
    return invalidParameters(this.#problems);
  }
}

/**
 * Parameters that the management API accepts but ignores. It also ignores the header X-Svc-Workspace. Both name a workspace, and accounts and
 * keys do not belong to workspaces. Source: docs/api-contract.md, "Operations".
 */
export const WORKSPACE_IGNORED = ['workspace'] as const;

export function requireNoParameters(rawQuery: string, rules: Omit<ParameterRules, 'names'> = {}): void {
  const parameters = new QueryParameters(rawQuery, { ...rules, names: [] });
  if (!parameters.areValid) throw parameters.error();
}

function isUnknown(name: string, { names, ignored = [], unsupported = {} }: ParameterRules): boolean {
  return !names.includes(name) && !ignored.includes(name) && !Object.hasOwn(unsupported, name);
}

/** @param listsNames whether the message for an unknown parameter lists the valid parameters */
function admissionProblem(
  name: string,
  values: readonly string[],
  rules: ParameterRules,
  listsNames: boolean,
): string | undefined {
  const { names, mayRepeat = [], unsupported = {} } = rules;
  if (!names.includes(name)) {
    const instead = Object.hasOwn(unsupported, name) ? unsupported[name] : undefined;
    if (instead !== undefined) return `${name} is not supported; ${instead}.`;
    if (names.length === 0) return `${quoted(name)} is not a parameter; this operation takes none.`;
    return `${quoted(name)} is not a parameter${listsNames ? `; the parameters are ${names.join(', ')}` : ''}.`;
  }
  if (values.length > 1 && !mayRepeat.includes(name)) return `${name} is given ${values.length} times; give it once.`;
  return undefined;
}
