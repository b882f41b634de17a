/** The part that is loaded when a conversation needs it. */
export { Attach } from './attach.tsx';
export { Attached } from './attached.tsx';
