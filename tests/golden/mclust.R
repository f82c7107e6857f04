# Numbers of R mclust for all 14 models, from given responsibilities. To regenerate, from the repository's root:
#
#   python tests/golden/make_inputs.py build/golden
#   Rscript tests/golden/mclust.R build/golden tests/golden/mclust.json
#
# Needs the R packages mclust and jsonlite. Without the second argument the JSON goes to stdout.

suppressPackageStartupMessages(library(mclust))
library(jsonlite)

args <- commandArgs(trailingOnly = TRUE)
models <- c("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
control <- emControl(tol = c(1e-12, 1e-14), itmax = c(10000, 10000))

read_matrix <- function(name) unname(as.matrix(read.csv(file.path(args[1], paste0(name, ".csv")), header = FALSE)))

components_first <- function(x) aperm(x, rev(seq_along(dim(x))))  # sigma is symmetric: (d, d, G) -> (G, d, d)

# what an M-step maximises over sigma: -1/2 sum_k [ n_k log|sigma_k| + tr(sigma_k^-1 W_k) ]
objective <- function(x, z, parameters) {
  total <- 0
  for (k in seq_len(ncol(z))) {
    sigma <- matrix(parameters$variance$sigma[, , k], ncol(x))
    centred <- sweep(x, 2, parameters$mean[, k])
    W <- crossprod(centred * sqrt(z[, k]))
    total <- total - (sum(z[, k]) * as.numeric(determinant(sigma)$modulus) + sum(solve(sigma) * W)) / 2
  }
  total
}

fit <- function(model, x, z) {
  first <- mstep(modelName = model, data = x, z = z, prior = NULL, control = control)
  after <- do.call("estep", c(list(data = x), first[c("modelName", "parameters")]))
  end <- me(modelName = model, data = x, z = z, prior = NULL, control = control)
  # the log-likelihood of exactly the returned parameters, not what the last pass happened to report
  again <- do.call("estep", c(list(data = x), end[c("modelName", "parameters")]))
  failed <- is.null(end$parameters$variance$sigma) || is.na(end$loglik) || is.na(again$loglik)
  list(
    first_loglik = after$loglik,
    first_objective = objective(x, z, first$parameters),
    failed = failed,
    loglik = again$loglik,
    reported_loglik = end$loglik,
    iterations = as.integer(attr(end, "info")[[1]]),
    pro = end$parameters$pro,
    mean = t(end$parameters$mean),
    sigma = if (failed) NULL else components_first(end$parameters$variance$sigma)
  )
}

one_set <- function(name) {
  x <- read_matrix(name)
  z <- read_matrix(paste0(name, "_z"))
  list(
    n_rows = nrow(x),
    n_columns = ncol(x),
    n_components = ncol(z),
    column_sums = colSums(x),  # to see that the data are the same
    column_squares = colSums(x^2),
    start = max.col(z) - 1L,  # group of each row, from 0
    models = sapply(models, fit, x = x, z = z, simplify = FALSE)
  )
}

likelihoods <- function(name) {
  x <- read_matrix(name)
  z <- read_matrix(paste0(name, "_z"))
  list(
    column_sums = colSums(x),
    loglik = sapply(models, function(model) fit(model, x, z)$loglik, simplify = FALSE)
  )
}

sets <- c("iris", "wine", "synthetic")
tables <- as.vector(outer(c("crabs", "new_thyroid", "wine"), c("classes", "groups"), paste, sep = "_"))
out <- list(
  R = R.version.string,
  mclust = as.character(packageVersion("mclust")),
  control = list(tol = control$tol, itmax = control$itmax),
  sets = sapply(sets, one_set, simplify = FALSE),
  tables = sapply(tables, likelihoods, simplify = FALSE)
)
text <- toJSON(out, digits = I(16), auto_unbox = TRUE, na = "null", null = "null")
if (length(args) > 1) writeLines(text, args[2]) else writeLines(text)
