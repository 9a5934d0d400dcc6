/**
 * A query string, parsed strictly: a parameter that is unknown, empty, or given again where one value is meant is an error,
 * because a typo must not read as "everything". All are collected, so that the caller can fix them in one go.
 * Source: DESIGN section 6.
 */
import type { z } from 'zod';
import { type ApiError, invalidParameters, type ParameterProblem } from './errors.js';

export interface ParameterRules {
  /** The valid parameters, in the specification's order. */
  readonly names: readonly string[];
  /** Parameters that may be empty. */
  readonly mayBeEmpty?: readonly string[];
  /** Parameters that may be given several times. */
  readonly mayRepeat?: readonly string[];
  /** Parameters that are accepted and not looked at. */
  readonly ignored?: readonly string[];
  /** Parameters of related APIs that are asked for by mistake, with what to use instead. */
  readonly unsupported?: Readonly<Record<string, string>>;
}

const QUOTED_LENGTH = 80;
const LEFT_OUT = 'give it a value or leave it out';

export class QueryParameters {
  readonly #values = new Map<string, readonly string[]>();
  readonly #problems: ParameterProblem[] = [];
  readonly #mayBeEmpty: readonly string[];

  /** @param rawQuery without the question mark; percent-encoded UTF-8, which `checkRequestTarget` has checked */
  constructor(rawQuery: string, rules: ParameterRules) {
    this.#mayBeEmpty = rules.mayBeEmpty ?? [];
    const sent = new URLSearchParams(rawQuery);
    // The valid ones are named once, whatever is sent: a short request gets no long answer.
    const firstUnknown = [...sent.keys()].find((name) => isUnknown(name, rules));
    // In one pass: `getAll` would look through thousands of parameters for each of their names.
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

  /** The value, parsed by the schema; undefined when it was not sent or is faulty. */
  optional<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema> | undefined {
    return this.#read(name, schema, LEFT_OUT)?.[0];
  }

  /** All values of a parameter that may repeat; undefined when it was not sent or one of them is faulty. */
  list<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema>[] | undefined {
    return this.#read(name, schema, LEFT_OUT);
  }

  /** A list whose members come with commas between them, in parameters of their own, or both. */
  joined<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema> | undefined {
    const texts = this.#values.get(name);
    if (texts !== undefined && !texts.includes('')) this.#values.set(name, [texts.join(',')]);
    return this.optional(name, schema);
  }

  /** The value of a parameter that must be sent. */
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

  /** @param message a sentence that names the parameter, what was wrong and what is allowed */
  problem(parameter: string, message: string): void {
    this.#problems.push({ parameter, message });
  }

  get areValid(): boolean {
    return this.#problems.length === 0;
  }

  refusal(): ApiError {
    return invalidParameters(this.#problems);
  }
}

/**
 * Operations of the management API take a workspace, as they do the header X-Svc-Workspace; accounts and keys belong to none.
 * Source: the API specification, section "Management API".
 */
export const WORKSPACE_IGNORED = ['workspace'] as const;

/** For operations without parameters. @throws ApiError `invalid_parameter` */
export function refuseParameters(rawQuery: string, rules: Omit<ParameterRules, 'names'> = {}): void {
  const parameters = new QueryParameters(rawQuery, { ...rules, names: [] });
  if (!parameters.areValid) throw parameters.refusal();
}

/** Whether the name is unknown: no parameter, none that is ignored, and none of those that are known and not supported. */
function isUnknown(name: string, { names, ignored = [], unsupported = {} }: ParameterRules): boolean {
  return !names.includes(name) && !ignored.includes(name) && !Object.hasOwn(unsupported, name);
}

/** @param listsNames whether the message of an unknown parameter has the valid ones */
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

/** A text of the caller, for a message about it. */
export function quoted(text: string): string {
  return JSON.stringify(shortened(text));
}

/** At most as much of it as a message should repeat. */
export function shortened(text: string): string {
  const characters = [...text];
  return characters.length > QUOTED_LENGTH ? `${characters.slice(0, QUOTED_LENGTH).join('')}…` : text;
}
