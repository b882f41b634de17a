export { Sessions } from './sessions.ts';
export { revokeSessions } from './store.ts';
