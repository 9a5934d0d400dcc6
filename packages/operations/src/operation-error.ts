/** An expected way for an operation to end badly. The message says to an operator what failed and how to fix it. */
export class OperationError extends Error {
  override readonly name = 'OperationError';
}

/** How far an operation has come. Called with 0 done before the first step. */
export type OnProgress = (done: number, total: number) => void;
