/** What strangers wrote, made safe to show: the entry `@posthouse/client/content`. */
export type {
  AttachmentNode,
  BlockedNode,
  BlockNode,
  BodyTree,
  InlineNode,
  LinkNode,
} from './nodes.ts';
export { bodyLimits, readBody } from './read-body.ts';
export { visibleName, visibleText } from './visible-text.ts';
