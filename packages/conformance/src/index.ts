export * from './caller.ts';
export * from './check.ts';
export { checks } from './checks/index.ts';
export * from './demand.ts';
export * from './plain/http.ts';
export * from './plain/websocket.ts';
export * from './runner.ts';
export * from './stage.ts';
export * from './target.ts';
