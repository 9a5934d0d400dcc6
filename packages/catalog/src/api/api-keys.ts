/**
 * API keys of a service account, as they are listed and created over HTTP. The specification names the form of the paths and
 * the scopes; the members are ours. Source: the API specification, sections "Management API" and "Authentication".
 */
import * as z from 'zod/mini';
import { KEY_ROLES } from '../caller.js';
import { described, instant, listPage } from './answer-parts.js';

export const apiKeySchema = z.object({
  id: described(z.string(), 'The {apiKeyId} of paths; not the key itself.'),
  account: described(z.string(), 'The account that the key may read, or send events of.'),
  role: described(z.enum(KEY_ROLES), 'What the key may do there.'),
  createdAt: instant(),
  expiresAt: z.optional(instant('From then on the key is refused; left out for one that does not expire.')),
  lastUsedAt: z.optional(
    instant('The beginning of the hour, in UTC, in which the key was last used; left out for one that never was.'),
  ),
  revoked: z.boolean(),
});
/** A key of a service account, without its text. */
export type ApiKeyAnswer = z.output<typeof apiKeySchema>;

/** The list before lists were paginated. */
export const apiKeyArraySchema = z.array(apiKeySchema);
/** The list since then. */
export const apiKeyPageSchema = listPage(apiKeySchema);

export const createdApiKeySchema = z.extend(apiKeySchema, {
  key: described(z.string(), 'The key itself. It is shown this once, and kept only as a hash.'),
});
/** A new key, the only time that it is shown. */
export type CreatedApiKeyAnswer = z.output<typeof createdApiKeySchema>;
