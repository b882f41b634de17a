export * from './authorization.ts';
export * from './grant.ts';
export * from './grant-selection.ts';
export * from './invite.ts';
export * from './signed-query.ts';
