/** Changes to the fields of an event before it is sent again. */

export interface Edits {
  readonly set: ReadonlyMap<string, unknown>;
  readonly unset: ReadonlySet<string>;
}

/** @param text `field=value`; a value that is JSON is taken as such, any other as a string */
export function parseEdit(text: string): { readonly field: string; readonly value: unknown } | undefined {
  const [, field, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  return field === undefined || value === undefined ? undefined : { field, value: parseValue(value) };
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function applyEdits(event: object, { set, unset }: Edits): object {
  const kept = Object.entries(event).filter(([field]) => !unset.has(field));
  return Object.fromEntries([...kept, ...set]);
}

export function isEdited({ set, unset }: Edits): boolean {
  return set.size > 0 || unset.size > 0;
}
