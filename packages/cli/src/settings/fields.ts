/**
 * Checks what a file of settings holds. Not with zod: commands read these files before their first request, and zod takes longer to
 * load than all that is loaded for it. The faults are in zod's words.
 */

/** What is wrong with a value; undefined: nothing. */
export type Rule = (value: unknown) => string | undefined;

/** A rule for each member. Others are left alone. */
export type Fields<Shape> = { readonly [Name in keyof Shape]-?: Rule };

export const text: Rule = (value) => (typeof value === 'string' ? undefined : expected('string', value));

export const someText: Rule = (value) =>
  text(value) ?? (value === '' ? 'Too small: expected string to have >=1 characters' : undefined);

export const url: Rule = (value) =>
  typeof value !== 'string' ? text(value) : URL.canParse(value) ? undefined : 'Invalid URL';

export function optional(rule: Rule): Rule {
  return (value) => (value === undefined ? undefined : rule(value));
}

export function hasFields<Shape>(value: unknown, fields: Fields<Shape>): value is Shape {
  return faultsOf(value, fields).length === 0;
}

/** Such as `redisUrl: Invalid URL`, in the order of the fields. */
export function faultsOf<Shape>(value: unknown, fields: Fields<Shape>): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [`content: ${expected('object', value)}`];
  const members = new Map<string, unknown>(Object.entries(value));
  return Object.entries<Rule>(fields).flatMap(([name, rule]) => {
    const fault = rule(members.get(name));
    return fault === undefined ? [] : [`${name}: ${fault}`];
  });
}

function expected(kind: string, value: unknown): string {
  const received = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  return `Invalid input: expected ${kind}, received ${received}`;
}
