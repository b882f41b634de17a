export { type ChainEvent, checkGroupAuthority, currentMember } from './authority.ts';
export {
  checkChainEvent,
  checkGroupOpen,
  decideChainEvent,
  type GroupEffects,
  type GroupProperties,
  nextGroupPosition,
} from './effects.ts';
export {
  checkGroupSender,
  decideGroupEvent,
  type GroupAnchor,
  type GroupSigner,
  reduceGroup,
  startGroup,
  type VerifiedGroupEvent,
} from './reduce.ts';
