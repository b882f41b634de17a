export { noPolicy, openPolicy } from './policy.ts';
