/** How often a gateway did not know the way to a range, since its start. Warm, it always does. */
export interface RouteLookupStats {
  /** The masters were asked where keys are. */
  routes: number;
  /** The replicas of a range were asked which of them leads: counted once for all who wait for it. */
  leaders: number;
}
