/** What a caller may do in an account. Source: DESIGN section 7. */

/** An admin sees workspaces one by one; a member sees the account as a whole. */
export const ROLES = ['admin', 'member'] as const;
export type Role = (typeof ROLES)[number];
