export { checkGroupAuthority, currentMember, type GroupLink } from './authority.ts';
export {
  checkGroupLink,
  checkGroupOpen,
  decideGroupLink,
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
