/** The JSON object in the body of a request, parsed as strictly as a query string. */
import { invalidBody, type ParameterFault, quoted, shortened } from '@meterline/api';
import { parseJson } from '@meterline/catalog';
import { z } from 'zod';

const jsonObject = z.record(z.string(), z.unknown());

/**
 * @param body as the body parser leaves it: bytes, or nothing
 * @param example of a body, for messages
 * @throws ApiError `invalid_body` with every fault
 */
export function parseBody<Schema extends z.ZodObject>(
  body: unknown,
  schema: Schema,
  example: unknown,
): z.output<Schema> {
  const sent = jsonObject.safeParse(Buffer.isBuffer(body) ? parseJson(body.toString()) : undefined);
  if (!sent.success) {
    throw invalidBody([
      { parameter: 'body', message: `The body must be a JSON object, such as ${JSON.stringify(example)}.` },
    ]);
  }
  const parsed = schema.safeParse(sent.data);
  if (parsed.success) return parsed.data;
  throw invalidBody(parsed.error.issues.flatMap((issue) => faultsOf(issue, sent.data, Object.keys(schema.shape))));
}

function faultsOf(
  issue: z.core.$ZodIssue,
  sent: Readonly<Record<string, unknown>>,
  names: readonly string[],
): ParameterFault[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((name) => ({
      parameter: name,
      message: `${quoted(name)} is not a member; the members are ${names.join(', ')}.`,
    }));
  }
  const name = String(issue.path[0]);
  if (!Object.hasOwn(sent, name)) return [{ parameter: name, message: `${name} is missing; it is required.` }];
  const value = sent[name];
  const got = typeof value === 'string' ? quoted(value) : shortened(JSON.stringify(value));
  return [{ parameter: name, message: `${name} ${issue.message} (got ${got}).` }];
}
