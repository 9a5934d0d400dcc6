/** For a service that takes tokens: it brings the library that checks them. */
export { createTokenVerifier, type TokenVerifier, type TokenVerifierOptions } from './auth/token-verifier.js';
