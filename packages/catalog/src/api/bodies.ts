/** The bodies of requests. As the parameters, they check requests in the service and describe them in its OpenAPI document. */
import * as z from 'zod';
import { KEY_ROLES } from '../caller.js';
import { instantText, nameText } from './parameters.js';

/** A new API key. */
export const newApiKeySchema = z.strictObject({
  role: z.enum(KEY_ROLES, { error: `must be one of ${KEY_ROLES.join(', ')}` }).meta({
    description:
      'An admin may group and filter by workspace, and manage keys; a member sees the account as a whole; an emitter may ' +
      'send events and read nothing.',
  }),
  account: nameText.optional().meta({
    description: 'An account that you are an admin of. Needed only by those who are an admin of several.',
  }),
  expiresAt: instantText.optional().meta({
    format: 'date-time',
    description: 'When the key stops to be valid: RFC 3339 in UTC, in the future. Left out: it does not expire.',
  }),
});
