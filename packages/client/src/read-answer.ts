/** The body of a successful answer, checked. */
import { readExactJson } from '@meterline/catalog/api';
import { unexpectedAnswer } from './errors.js';
import type { RawAnswer } from './transport.js';

/** The part of a zod schema that the client uses. */
export interface AnswerSchema<Value> {
  safeParse(input: unknown): { success: true; data: Value } | { success: false; error: Fault };
}

/** The part of zod's error that the client shows. */
interface Fault {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
}

/** @throws MeterlineError when the body does not match the schema */
export function readAnswer<Value>({ response, text }: RawAnswer, schema: AnswerSchema<Value>): Value {
  let body: unknown;
  try {
    body = readExactJson(text);
  } catch (error) {
    throw unexpectedAnswer(response, 'it is not JSON', error);
  }
  const value = schema.safeParse(body);
  if (value.success) return value.data;
  throw unexpectedAnswer(response, faultText(value.error), value.error);
}

/** The first fault: `data[0].summary.cost: must be a decimal`. */
function faultText({ issues: [first] }: Fault): string {
  if (!first) return 'it has another form';
  const place = first.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return `${place.replace(/^\./, '') || 'the whole'}: ${first.message}`;
}
