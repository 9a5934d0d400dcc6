/** Defines the body of a request that saves a view. */
import * as z from 'zod';
import { isBillingDimension, isResourceType } from '../dimensions.js';
import { ignoredViewParameter } from '../view.js';

/** The filters whose values are codes. The page also reads unknown codes, because it learns the added ones from the API. */
const CODES: Readonly<Record<string, (value: string) => boolean>> = {
  type: isResourceType,
  dimension: isBillingDimension,
};

function unknownCode(query: URLSearchParams): string | undefined {
  const found = [...query].find(([name, value]) => CODES[name.replace(/^not-/, '')]?.(value) === false);
  return found?.join('=');
}

const MAX_VIEW_QUERY_LENGTH = 8_000;

const viewQuery = z
  .string('must be a string')
  .max(MAX_VIEW_QUERY_LENGTH, `must have at most ${MAX_VIEW_QUERY_LENGTH} characters`)
  .superRefine((text, context) => {
    const query = new URLSearchParams(text);
    const ignored = ignoredViewParameter(query) ?? unknownCode(query);
    if (ignored === undefined) return;
    context.addIssue({
      code: 'custom',
      message: `has the parameter "${ignored}", which the page does not read; copy the part after the question mark of the page's address, without the account`,
    });
  })
  .meta({
    description:
      "The view as the page's address has it after the question mark, without the account, such as `period=month&group=workspace`.",
  });

export const viewBodySchema = z.strictObject({ query: viewQuery });
