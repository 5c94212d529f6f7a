// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds windows that are completely obscured by others.
//!
//! The server reports changes of a window's visibility, but its current visibility cannot be
//! queried. So for new windows it is computed once from the geometry of all windows above them.

use super::ask::QueryBatch;
use crate::error::DisplayError;
use std::collections::BTreeSet;
use x11rb::protocol::shape::ConnectionExt as _;
use x11rb::protocol::xproto::{
    ConnectionExt as _, GetGeometryReply, MapState, Window, WindowClass,
};

/// Maximum number of children of the root window for this computation; with more, every window
/// counts as visible.
const CHILDREN_MAX: usize = 512;
/// Maximum number of rectangles in the visible part of a window; with more, it counts as visible.
const PIECES_MAX: usize = 512;

/// A rectangle of pixels of the root window; right and bottom are exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PixelRectangle {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

/// A child of the root window.
struct Layer {
    window: Window,
    area: PixelRectangle,
    /// It obscures everything below its area.
    covers: bool,
}

/// Returns the children of the root window in `windows` of which no part is visible.
pub(super) fn hidden_windows(
    queries: &QueryBatch<'_>,
    windows: &[Window],
) -> Result<BTreeSet<Window>, DisplayError> {
    if queries.composited()? {
        return Ok(BTreeSet::new());
    }
    let layers = layers(queries, windows)?;
    let Some((screen, layers)) = layers.split_first() else { return Ok(BTreeSet::new()) };
    let mut hidden = BTreeSet::new();
    for (place, layer) in layers.iter().enumerate() {
        let covers =
            layers[place + 1..].iter().filter(|above| above.covers).map(|above| above.area);
        if windows.contains(&layer.window) && is_hidden(layer.area.within(screen.area), covers) {
            hidden.insert(layer.window);
        }
    }
    Ok(hidden)
}

/// Returns the screen, and the windows from the lowest wanted one upward.
fn layers(queries: &QueryBatch<'_>, wanted: &[Window]) -> Result<Vec<Layer>, DisplayError> {
    let Some(tree) = queries.answer(queries.sent(queries.wire().query_tree(queries.root()))?)?
    else {
        return Ok(Vec::new());
    };
    let lowest = tree.children.iter().position(|child| wanted.contains(child));
    let Some(lowest) = lowest.filter(|_| tree.children.len() <= CHILDREN_MAX) else {
        return Ok(Vec::new());
    };
    let windows = [&[queries.root()], &tree.children[lowest..]].concat();
    let mut asked = Vec::new();
    for window in &windows {
        asked.push((
            queries.sent(queries.wire().get_geometry(*window))?,
            queries.sent(queries.wire().get_window_attributes(*window))?,
            queries.sent_if_known(queries.wire().shape_query_extents(*window))?,
        ));
    }
    let mut layers = Vec::new();
    for (window, (place, attributes, shape)) in windows.into_iter().zip(asked) {
        let (place, attributes) = (queries.answer(place)?, queries.answer(attributes)?);
        let shaped = shape.map(|shape| queries.answer(shape)).transpose()?.flatten();
        let (Some(place), Some(attributes)) = (place, attributes) else { continue };
        let solid = attributes.map_state == MapState::VIEWABLE
            && attributes.class == WindowClass::INPUT_OUTPUT;
        let covers = solid && !shaped.is_some_and(|shape| shape.bounding_shaped);
        layers.push(Layer { window, area: PixelRectangle::new(&place), covers });
    }
    Ok(layers)
}

/// Returns `true` if the covers obscure the whole area.
fn is_hidden(area: PixelRectangle, covers: impl Iterator<Item = PixelRectangle>) -> bool {
    let mut pieces = vec![area];
    pieces.retain(|piece| !piece.is_empty());
    for cover in covers {
        pieces = pieces.into_iter().flat_map(|piece| piece.without(cover)).collect();
        if pieces.is_empty() || pieces.len() > PIECES_MAX {
            break;
        }
    }
    pieces.is_empty()
}

impl PixelRectangle {
    /// Includes the border, like the server.
    fn new(place: &GetGeometryReply) -> PixelRectangle {
        let (left, top) = (i32::from(place.x), i32::from(place.y));
        let border = 2 * i32::from(place.border_width);
        PixelRectangle {
            left,
            top,
            right: left + i32::from(place.width) + border,
            bottom: top + i32::from(place.height) + border,
        }
    }

    fn is_empty(&self) -> bool {
        self.left >= self.right || self.top >= self.bottom
    }

    fn within(self, other: PixelRectangle) -> PixelRectangle {
        PixelRectangle {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        }
    }

    /// Returns the rest outside `cover`: at most four rectangles, which do not overlap.
    fn without(self, cover: PixelRectangle) -> impl Iterator<Item = PixelRectangle> {
        let cut = self.within(cover);
        let parts = if cut.is_empty() {
            [self, cut, cut, cut]
        } else {
            [
                PixelRectangle { bottom: cut.top, ..self },
                PixelRectangle { top: cut.bottom, ..self },
                PixelRectangle { right: cut.left, top: cut.top, bottom: cut.bottom, ..self },
                PixelRectangle { left: cut.right, top: cut.top, bottom: cut.bottom, ..self },
            ]
        };
        parts.into_iter().filter(|part| !part.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(left: i32, top: i32, right: i32, bottom: i32) -> PixelRectangle {
        PixelRectangle { left, top, right, bottom }
    }

    fn random_area(random: &mut fastrand::Rng, side_max: i32) -> PixelRectangle {
        let (left, top) = (random.i32(0..12), random.i32(0..12));
        area(left, top, left + 1 + random.i32(0..side_max), top + 1 + random.i32(0..side_max))
    }

    impl PixelRectangle {
        fn has(&self, x: i32, y: i32) -> bool {
            (self.left..self.right).contains(&x) && (self.top..self.bottom).contains(&y)
        }
    }

    fn hidden(area: PixelRectangle, covers: &[PixelRectangle]) -> bool {
        is_hidden(area, covers.iter().copied())
    }

    #[test]
    fn a_window_is_hidden_under_all_of_its_covers_together() {
        let window = area(10, 10, 30, 30);
        assert!(hidden(window, &[area(0, 0, 40, 40)]));
        assert!(hidden(window, &[area(0, 0, 20, 40), area(20, 0, 40, 40)]));
        assert!(!hidden(window, &[area(0, 0, 20, 40), area(21, 0, 40, 40)]));
        assert!(!hidden(window, &[area(10, 10, 30, 29)]));
        assert!(!hidden(window, &[area(30, 10, 50, 30)]));
        assert!(!hidden(window, &[]));
    }

    #[test]
    fn what_is_not_on_the_screen_is_hidden() {
        let screen = area(0, 0, 100, 100);
        assert!(hidden(area(-50, 0, 0, 50).within(screen), &[]));
        assert!(!hidden(area(-50, 0, 1, 50).within(screen), &[]));
    }

    /// Compares with counted pixels for many covers in many places, always the same ones.
    #[test]
    fn pixels_agree() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut outcomes = BTreeSet::new();
        for _ in 0..500 {
            let window = random_area(&mut random, 6);
            let covers: Vec<PixelRectangle> = (0..8).map(|_| random_area(&mut random, 9)).collect();
            let any = (window.left..window.right).any(|x| {
                (window.top..window.bottom).any(|y| !covers.iter().any(|cover| cover.has(x, y)))
            });
            assert_eq!(hidden(window, &covers), !any, "{window:?} {covers:?}");
            outcomes.insert(any);
        }
        assert_eq!(outcomes.len(), 2);
    }
}
