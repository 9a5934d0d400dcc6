/** See stamp.mjs. */
export declare function stampOfInputs(root: string): string;
