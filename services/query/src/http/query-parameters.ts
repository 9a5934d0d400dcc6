/**
 * A query string, parsed strictly: a parameter that is unknown, repeated or empty is a fault, because a typo must not read
 * as "everything". All faults are collected, so that the caller can fix them in one go. Source: DESIGN section 6.
 */
import type { z } from 'zod';
import { type ApiError, invalidParameters, type ParameterFault } from './errors.js';

export interface ParameterRules {
  /** The valid parameters, in the specification's order. */
  readonly names: readonly string[];
  /** Those that may be empty. */
  readonly mayBeEmpty?: readonly string[];
  /** Parameters of related APIs that are asked for by mistake, with what to use instead. */
  readonly unsupported?: Readonly<Record<string, string>>;
}

const QUOTED_LENGTH = 80;

export class QueryParameters {
  readonly #values = new Map<string, string>();
  readonly #faulty = new Set<string>();
  readonly #faults: ParameterFault[] = [];
  readonly #mayBeEmpty: readonly string[];

  /** @param rawQuery without the question mark; percent-encoded UTF-8, which `checkRequestTarget` has checked */
  constructor(rawQuery: string, rules: ParameterRules) {
    this.#mayBeEmpty = rules.mayBeEmpty ?? [];
    const sent = new URLSearchParams(rawQuery);
    for (const name of new Set(sent.keys())) {
      const fault = admissionFault(name, sent.getAll(name), rules);
      if (fault === undefined) this.#values.set(name, sent.get(name) ?? '');
      else this.fault(name, fault);
    }
  }

  /** The value, parsed by the schema; undefined when it was not sent or is faulty. */
  optional<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema> | undefined {
    return this.#read(name, schema, 'give it a value or leave it out');
  }

  /** The same for a parameter that must be sent. */
  required<Schema extends z.ZodType>(name: string, schema: Schema): z.output<Schema> | undefined {
    if (!this.#values.has(name) && !this.#faulty.has(name)) this.fault(name, `${name} is missing; it is required.`);
    return this.#read(name, schema, 'it is required, give it a value');
  }

  #read<Schema extends z.ZodType>(name: string, schema: Schema, ifEmpty: string): z.output<Schema> | undefined {
    const text = this.#values.get(name);
    if (text === undefined) return undefined;
    if (text === '' && !this.#mayBeEmpty.includes(name)) {
      this.fault(name, `${name} is empty; ${ifEmpty}.`);
      return undefined;
    }
    const value = schema.safeParse(text);
    if (value.success) return value.data;
    for (const { message } of value.error.issues) this.fault(name, `${name} ${message} (got ${quoted(text)}).`);
    return undefined;
  }

  /** @param message a sentence that names the parameter, what was wrong and what is allowed */
  fault(parameter: string, message: string): void {
    this.#faulty.add(parameter);
    this.#faults.push({ parameter, message });
  }

  get areValid(): boolean {
    return this.#faults.length === 0;
  }

  refusal(): ApiError {
    return invalidParameters(this.#faults);
  }
}

/** For operations without parameters. @throws ApiError `invalid_parameter` */
export function refuseParameters(rawQuery: string): void {
  const parameters = new QueryParameters(rawQuery, { names: [] });
  if (!parameters.areValid) throw parameters.refusal();
}

function admissionFault(name: string, values: readonly string[], rules: ParameterRules): string | undefined {
  const { names, unsupported = {} } = rules;
  if (!names.includes(name)) {
    const instead = Object.hasOwn(unsupported, name) ? unsupported[name] : undefined;
    if (instead !== undefined) return `${name} is not supported; ${instead}.`;
    if (names.length === 0) return `${quoted(name)} is not a parameter; this operation takes none.`;
    return `${quoted(name)} is not a parameter; the parameters are ${names.join(', ')}.`;
  }
  if (values.length > 1) return `${name} is given ${values.length} times; give it once.`;
  return undefined;
}

function quoted(text: string): string {
  const characters = [...text];
  const shown = characters.length > QUOTED_LENGTH ? `${characters.slice(0, QUOTED_LENGTH).join('')}…` : text;
  return JSON.stringify(shown);
}
