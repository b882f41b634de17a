export { noPolicy, openPolicy } from './policy.ts';
export { requireProgram } from './require-program.ts';
