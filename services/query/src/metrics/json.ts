/** JSON whose numbers are exact decimals: JSON.stringify could only write doubles. */
import type { DecimalText } from '@meterline/catalog';

/** A number that is written digit by digit as it stands. */
export class ExactNumber {
  readonly text: DecimalText;

  constructor(text: DecimalText) {
    this.text = text;
  }
}

/** JSON that somebody has written already. */
export class WrittenJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type ExactJson =
  | string
  | boolean
  | ExactNumber
  | WrittenJson
  | readonly ExactJson[]
  | { readonly [member: string]: ExactJson | undefined };

/** Members that are undefined are left out, as in JSON.stringify. */
export function writeJson(value: ExactJson): string {
  if (typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
  if (value instanceof ExactNumber || value instanceof WrittenJson) return value.text;
  // Texts are put together with +, which does not copy them; to join them at each level would.
  let text = '';
  if (isList(value)) {
    for (const element of value) text += `${text === '' ? '' : ','}${writeJson(element)}`;
    return `[${text}]`;
  }
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${writeJson(member)}`;
  }
  return `{${text}}`;
}

/** Array.isArray does not narrow a readonly array. */
function isList(value: object): value is readonly ExactJson[] {
  return Array.isArray(value);
}
