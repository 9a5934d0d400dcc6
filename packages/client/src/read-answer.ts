/** The body of a successful answer, checked. */
import type * as answers from '@meterline/catalog/answers';
import { readExactJson } from '@meterline/catalog/questions';
import { unexpectedAnswer } from './errors.js';
import type { RawAnswer } from './transport.js';

/** The part of a zod schema that the client uses. */
interface AnswerSchema<Value> {
  safeParse(input: unknown): { success: true; data: Value } | { success: false; error: Fault };
}

/** Names the schema of an answer, which need not be loaded yet. */
export type SchemaOf<Value> = (schemas: typeof answers) => AnswerSchema<Value>;

/** The part of zod's error that the client shows. */
interface Fault {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
}

/**
 * Loads the schemas while the request is on its way: with zod they take Node longer than everything before the request.
 * @throws MeterlineError when the body does not match the schema
 */
export async function readAnswer<Value>(sent: Promise<RawAnswer>, schemaOf: SchemaOf<Value>): Promise<Value> {
  const [{ response, text }, schemas] = await Promise.all([sent, import('@meterline/catalog/answers')]);
  let body: unknown;
  try {
    body = readExactJson(text);
  } catch (error) {
    throw unexpectedAnswer(response, 'it is not JSON', error);
  }
  const value = schemaOf(schemas).safeParse(body);
  if (value.success) return value.data;
  throw unexpectedAnswer(response, faultText(value.error), value.error);
}

/** The first fault: `data[0].summary.cost: must be a decimal`. */
function faultText({ issues: [first] }: Fault): string {
  if (!first) return 'it has another form';
  const place = first.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return `${place.replace(/^\./, '') || 'the whole'}: ${first.message}`;
}
