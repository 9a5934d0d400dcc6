/**
 * zod compiles its checks with eval, which the content security policy forbids. A schema decides at its construction, so
 * this is imported before any module that has one.
 */
import { config } from 'zod';

config({ jitless: true });
