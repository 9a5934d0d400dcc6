import { isUtf8 } from 'node:buffer';
import { invalidBody, type ParameterProblem } from '@meterline/api/http/errors';
import { parseJson, property, quoted, shortened } from '@meterline/catalog/plain';
import { z } from 'zod';

const jsonObject = z.record(z.string(), z.unknown());

/**
 * Parses the JSON body of a request.
 * @param body the bytes from the body parser, or undefined if the request has no body
 * @param example an example body for the error message
 * @throws ApiError `invalid_body` with all errors
 */
export function parseBody<Schema extends z.ZodObject>(
  body: unknown,
  schema: Schema,
  example: unknown,
): z.output<Schema> {
  const sent = jsonObject.safeParse(Buffer.isBuffer(body) && isUtf8(body) ? parseJson(body.toString()) : undefined);
  if (!sent.success) {
    throw invalidBody([
      { parameter: 'body', message: `The body must be a JSON object in UTF-8, such as ${JSON.stringify(example)}.` },
    ]);
  }
  const parsed = schema.safeParse(sent.data);
  if (parsed.success) return parsed.data;
  throw invalidBody(parsed.error.issues.flatMap((issue) => problemsOf(issue, sent.data, Object.keys(schema.shape))));
}

function problemsOf(
  { path, ...issue }: z.core.$ZodIssue,
  sent: Readonly<Record<string, unknown>>,
  names: readonly string[],
): ParameterProblem[] {
  if (issue.code === 'unrecognized_keys' && path.length === 0) {
    return issue.keys.map((name) => ({
      parameter: name,
      message: `${quoted(name)} is not a field; the fields are ${names.join(', ')}.`,
    }));
  }
  const parameter = path.join('.');
  const value = path.reduce<unknown>((object, name) => property(object, String(name)), sent);
  if (value === undefined) return [{ parameter, message: `${parameter} is missing; it is required.` }];
  // Forms send empty fields as empty strings.
  if (value === '') return [{ parameter, message: `${parameter} is missing; it ${issue.message}.` }];
  const got = typeof value === 'string' ? quoted(value) : shortened(JSON.stringify(value));
  return [{ parameter, message: `${parameter} ${issue.message} (got ${got}).` }];
}
