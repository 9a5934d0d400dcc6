/**
 * zod compiles its checks with eval, which the content security policy forbids. A schema decides this when it is created,
 * so this module is imported before any module with a schema.
 */
import { config } from 'zod';

config({ jitless: true });
